// The weak memory model: docs/memory-model.md, rule by rule. Vector clocks say which accesses are
// ordered; ordinary accesses that are not are errors; atomic ones may read what is not the newest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "runtime/emulator/memory_model.h"
#include "runtime/emulator/shadow.h"
#include "runtime/emulator/vector_clock.h"

namespace afdep::emulator {

// What a thread knows. `hb`: happens-before. `seen`: beside that, what came before anything that it
// read (observation order). `fenced`: the part of hb that a proxy fence of global memory covers;
// `staged`: that one of shared memory does, handed on within the block alone.
struct ThreadClock {
  Agent agent = 0;
  Time time = 1;            // of its next access
  Time block_time = 0;      // everything of the block up to this comes before
  Time warp_time = 0;       // everything of the warp up to this comes before
  Time seen_warp_time = 0;  // everything of the warp up to this was observed
  Time seen_time = 0;       // of its newest atomic load
  ClockRef hb, seen, fenced, staged;
  bool fences = false;  // a fence of flags came, and before it this:
  ClockRef before_fence, before_fence_fenced;
  bool stale = false;
  bool ended = false;
  // Packets that it read last, and that were overwritten before that was proven to be the case.
  std::vector<std::uintptr_t> doubts;
};

// What all threads that met so far knew.
struct Met {
  ClockRef hb, seen, fenced, staged;
};

struct StreamRecord {
  std::uint32_t index = 0;
  Met order;                          // hb and seen of everything on it that has ended
  std::deque<std::uint64_t> started;  // kernels that have not ended, or after one that has not
};

struct RunRecord {
  int rank = 0;
  std::uint64_t launch = 0;
  StreamRecord* stream = nullptr;
  std::shared_ptr<const std::string> symbol;
  std::uint32_t generation = 0;  // 0: nobody knows
  Met start;
  Met end;
  bool ended = false;
};

struct BarrierRecord {
  Stamp published_by;  // comes before its use
  Met met;             // what whoever loaded through it knew
};

struct BlockRecord {
  RunRecord* run = nullptr;
  LaunchOrder order;
  int block = 0;
  const std::byte* shared = nullptr;
  std::size_t shared_bytes = 0;
  std::vector<ThreadClock> threads;  // none once the block has ended
  std::vector<BarrierRecord> barriers;
  std::vector<bool> ended;  // threads

  [[nodiscard]] bool in_shared(const void* address) const {
    const auto* const at = static_cast<const std::byte*>(address);
    return shared != nullptr && at >= shared && at < shared + shared_bytes;
  }
};

// Two accesses that nothing orders.
struct Violation {
  enum class Kind : std::uint8_t {
    kNone,
    kRace,       // at least one is a store, at least one is ordinary
    kSize,       // atomic, but of different sizes
    kScope,      // atomic, but not for each other: the scope of one does not reach the other
    kProxy,      // ordered, but not between the generic and the async proxy
    kOverwrite,  // of a packet that its reader may not have read yet
    kBarrier,    // used before its initialisation is known
    kSlots,      // the model ran out of numbers
  };
  Kind kind = Kind::kNone;
  const char* first_does = "";  // "store", "load", ...
  const char* second_does = "";
  Stamp first;
  Stamp second;
  std::uint32_t bytes = 0;  // of the second
  const void* address = nullptr;
  // kOverwrite: the generation that the packet carried which the reader took.
  std::optional<std::uint32_t> carried = std::nullopt;
};

class WeakMemory final : public MemoryModel {
 public:
  WeakMemory(Choices& choices, const DeviceMemory& memory);
  ~WeakMemory() override;

  void load(const Access& access, void* value) override;
  void store(const Access& access, const void* value) override;
  void load_input(const Access& access, void* value) override { load(access, value); }
  void load_packet(const Access& access, void* value) override;
  void store_packet(const Access& access, const void* value) override;
  void acquire(const Access& access, void* value) override;
  void release(const Access& access, const void* value) override;
  void store_flag(const Access& access, const void* value) override;
  void flags_fenced(const ThreadId& thread) override;
  void load_relaxed(const Access& access, void* value) override;
  void store_relaxed(const Access& access, const void* value) override;
  bool claim(const Access& access) override;
  std::uint32_t take(const Access& access) override;
  void load_shared(const Access& access) override;
  void store_shared(const Access& access) override;
  void add_shared(const Access& access) override;

  void warp_joined(const ThreadId& first, bool orders_memory) override;
  void block_joined(const ThreadId& first) override;
  void previous_kernel_awaited(const ThreadId& thread) override;
  void kernel_started(const KernelStart& start) override;
  void generation_known(std::uint64_t launch, std::uint32_t generation) override;
  void kernel_ended(int rank, std::uint64_t launch) override;
  std::uint32_t block_started(const BlockStart& start) override;
  void thread_ended(const ThreadId& thread) override;
  void block_ended(const ThreadId& first) override;
  void event_recorded(const void* event, std::uint64_t stream) override;
  void event_awaited(const void* event, std::uint64_t stream) override;
  void copied(std::uint64_t stream, void* to, const void* from, std::size_t bytes) override;
  void host_synchronized(std::uint64_t stream) override;
  void host_synchronized_all() override { forget_everything(); }
  [[nodiscard]] std::uint64_t host_order() const override { return host_orders_.size(); }
  void host_wrote(const void* at, std::size_t bytes) override { shadow_.forget(at, bytes); }
  void dropped_all() override { forget_everything(); }

  void barrier_published(const ThreadId& thread, std::uint32_t barrier) override;
  void barrier_used(const Access& access, std::uint32_t barrier) override;
  void bulk_load(const ThreadId& thread, Site site, void* to, const void* from, std::uint32_t bytes,
                 std::uint32_t barrier, std::uint32_t phase) override;
  void barrier_arrived(const ThreadId& thread, std::uint32_t barrier) override;
  void barrier_awaited(const ThreadId& thread, std::uint32_t barrier,
                       std::uint32_t phases) override;
  void bulk_store(const ThreadId& thread, Site site, void* to, const void* from,
                  std::uint32_t bytes, std::uint32_t group) override;
  void bulk_awaited(const ThreadId& thread, std::uint32_t group, bool only_read) override;
  void bulk_fenced(const ThreadId& thread, MemorySpace space) override;

  bool took_stale(const ThreadId& thread) override;
  void wait_expired(int rank) override { gave_up_.insert(rank); }
  void restart(std::uint64_t seed) override;
  [[nodiscard]] bool violated() const override { return violation_.kind != Violation::Kind::kNone; }
  [[nodiscard]] std::string violation() const override;

 private:
  using Kind = Violation::Kind;

  // ---- who and when: weak_memory.cpp ----
  ThreadClock& clock_of(const ThreadId& thread) { return clock_of(thread.agent); }
  ThreadClock& clock_of(Agent agent) { return blocks_[slot_of(agent)].threads[part_of(agent)]; }
  [[nodiscard]] LaunchOrder order_of(Agent agent) const { return blocks_[slot_of(agent)].order; }
  [[nodiscard]] bool ordered(const ThreadClock& self, Agent agent, Time time) const;
  [[nodiscard]] bool ordered(const ThreadClock& self, const Uses& uses) const;
  [[nodiscard]] bool observed(const ThreadClock& self, Agent agent, Time time) const;
  [[nodiscard]] bool fenced(const ThreadClock& self, MemorySpace space, Agent agent,
                            Time time) const;
  void learn(Met& known, const Met& other);
  // Everything that `self` has done or knows, as others may learn it.
  ClockRef published(const ThreadClock& self);
  void publish_seen(ThreadClock& self, Message& message);
  const ClockRef& seen_by(Message& message);
  void forget_everything();
  StreamRecord& stream(std::uint64_t number);

  // ---- ordinary accesses: weak_memory.cpp ----
  void read_unit(const ThreadClock& self, Unit& unit, const Access& access, bool adds);
  void write_unit(const ThreadClock& self, Unit& unit, const Access& access);
  bool check_write(const ThreadClock& self, const Unit& unit, const Access& access,
                   const char* does);
  bool check_uses(const ThreadClock& self, const Unit& unit, const Access& access, const char* does,
                  bool only_adds, bool only_reads);
  void note_use(const ThreadClock& self, Unit& unit, const Uses& use);
  void violate(Kind kind, const Access& access, const char* first_does, const Stamp& first,
               const char* second_does);

  // ---- atomic accesses: weak_atomics.cpp ----
  AtomicLocation& location(const ThreadClock& self, const Access& access, const char* does);
  void check_atomics(const ThreadClock& self, Cell& cell, const Access& access, const char* does,
                     bool store);
  Message& read_atomic(ThreadClock& self, AtomicLocation& at, const Access& access,
                       bool may_be_stale, bool counts_as_use);
  std::uint32_t read_modify_write(const Access& access, std::uint32_t (*changed)(std::uint32_t));
  void write_atomic(ThreadClock& self, AtomicLocation& at, const Access& access, const void* value,
                    bool releases, const Message* continues, bool behind_fence = false);
  void check_scope_of_load(const ThreadClock& self, const AtomicLocation& at, const Access& access);
  void check_scope_of_store(const ThreadClock& self, const AtomicLocation& at,
                            const Atomics& atomics, const Access& access);
  static void note_scope_of_load(const ThreadClock& self, Atomics& atomics, const Access& access);
  void load_atomic(const Access& access, void* value, bool acquires, bool counts_as_use);
  void store_atomic(const Access& access, const void* value, bool releases,
                    bool behind_fence = false);
  void doubt(Reader& reader, AtomicLocation& at, std::uint32_t by, const Access& where);
  [[nodiscard]] bool took_stale_packet() const;
  static std::optional<std::uint32_t> carried(const AtomicLocation& at, const Reader& reader);
  bool report_doubts(const ThreadClock& self);

  // ---- the async proxy: weak_bulk.cpp ----
  void async_access(const ThreadClock& self, Site site, MemorySpace space, const void* at,
                    std::uint32_t bytes, Agent agent, Time time, bool writes);
  [[nodiscard]] bool ordered_for_proxy(const ThreadClock& self, MemorySpace space,
                                       const Stamp& write) const;

  // ---- reports: weak_report.cpp ----
  [[nodiscard]] std::string name(const Stamp& stamp) const;
  [[nodiscard]] std::string missing() const;

  Choices& choices_;
  const DeviceMemory& memory_;
  Clocks clocks_;
  Shadow shadow_;
  std::deque<BlockRecord> blocks_;  // by slot; 0 is the host's
  std::unordered_map<std::uint64_t, RunRecord> runs_;
  std::unordered_map<std::uint64_t, std::unique_ptr<StreamRecord>> streams_;
  std::unordered_map<const void*, Met> events_;
  std::vector<Met> host_orders_;
  std::unordered_set<int> gave_up_;  // ranks with a wait that expired
  std::uint32_t stale_odds_ = 2;     // once in so many loads of an atomic the newest is passed over
  std::uint32_t skips_ = 4;          // how often a message is passed over
  Violation violation_;
};

}  // namespace afdep::emulator
