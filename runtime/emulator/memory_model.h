// What a load of memory returns, when a store becomes visible, and which accesses nothing orders.
// The scheduler checks addresses and picks the order of threads; the model decides everything about
// values and order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/emulator/sites.h"

namespace afdep::emulator {

class Choices;
class DeviceMemory;

// Who accesses memory: unique over a backend's life.
struct ThreadId {
  int rank = 0;
  std::uint64_t launch = 0;  // number of the launch on this backend, from 1
  int block = 0;
  int thread = 0;
  std::uint32_t agent = 0;  // the memory model's number for it

  friend bool operator==(const ThreadId&, const ThreadId&) = default;
};

// device/emulator/afdep/memory.cuh knows the numbers.
enum class Scope : std::uint8_t {
  kThread,  // an ordinary access: nobody else may rely on its order
  kBlock,   // threads of one block
  kGpu,     // threads of one rank
  kSystem,  // every rank and the host
};

// A naturally aligned access to memory that exists.
struct Access {
  const ThreadId& thread;
  Scope scope;
  void* address;
  std::uint32_t bytes;
  Site site;
};

struct KernelStart {
  int rank = 0;
  std::uint64_t launch = 0;
  std::uint64_t stream = 0;
  std::uint64_t host_order = 0;  // of host_order(), when the host queued it
  std::shared_ptr<const std::string> symbol;
};

struct BlockStart {
  std::uint64_t launch = 0;
  int block = 0;
  int threads = 0;
  const std::byte* shared = nullptr;  // the block's shared memory, which ends with the block
  std::size_t shared_bytes = 0;
};

// What a proxy fence is of.
enum class MemorySpace : std::uint8_t { kGlobal, kShared };

// Called by the scheduler, one access at a time. `value` points to access.bytes bytes of the
// thread's own. Whatever the model finds wrong it keeps: the scheduler asks after each call.
class MemoryModel {
 public:
  virtual ~MemoryModel() = default;

  // Ordinary accesses; vectors are no single-copy atomic unit, scalars are.
  virtual void load(const Access& access, void* value) = 0;
  virtual void store(const Access& access, const void* value) = 0;
  // Memory that no kernel writes while this one runs.
  virtual void load_input(const Access& access, void* value) = 0;
  // 16 bytes as one unit, ordered with nothing.
  virtual void load_packet(const Access& access, void* value) = 0;
  virtual void store_packet(const Access& access, const void* value) = 0;
  // Flag words.
  virtual void acquire(const Access& access, void* value) = 0;
  virtual void release(const Access& access, const void* value) = 0;
  // A flag stored behind a fence of its thread publishes what came before the fence.
  virtual void store_flag(const Access& access, const void* value) = 0;
  virtual void flags_fenced(const ThreadId& /*thread*/) {}
  // Words that threads share without order.
  virtual void load_relaxed(const Access& access, void* value) = 0;
  virtual void store_relaxed(const Access& access, const void* value) = 0;
  // Takes a word from 0 to 1; true for the one access that did.
  virtual bool claim(const Access& access) = 0;
  // Adds one to a word and returns what it was.
  virtual std::uint32_t take(const Access& access) = 0;

  // Shared memory is what it looks like; only the order of accesses is of interest.
  virtual void load_shared(const Access& /*access*/) {}
  virtual void store_shared(const Access& /*access*/) {}
  virtual void add_shared(const Access& /*access*/) {}

  // What orders accesses beside the above, told as it happens. `first` is the lowest thread that
  // takes part. A collective other than sync_warp orders no memory, but its lanes know that the
  // others came to it.
  virtual void warp_joined(const ThreadId& first, bool orders_memory) = 0;
  virtual void block_joined(const ThreadId& first) = 0;
  // A kernel's start orders it after the kernels, copies and events before it on its stream, but
  // for a kernel that still runs: after that one each thread comes by previous_kernel_awaited.
  virtual void previous_kernel_awaited(const ThreadId& thread) = 0;
  virtual void kernel_started(const KernelStart& start) = 0;
  // Which exchange a kernel belongs to, as soon as that is known.
  virtual void generation_known(std::uint64_t /*launch*/, std::uint32_t /*generation*/) {}
  virtual void kernel_ended(int rank, std::uint64_t launch) = 0;
  // Returns the agent of the block's first thread; the others follow.
  virtual std::uint32_t block_started(const BlockStart& /*start*/) { return 0; }
  virtual void thread_ended(const ThreadId& /*thread*/) {}
  virtual void block_ended(const ThreadId& /*first*/) {}
  virtual void event_recorded(const void* /*event*/, std::uint64_t /*stream*/) {}
  virtual void event_awaited(const void* /*event*/, std::uint64_t /*stream*/) {}
  virtual void copied(std::uint64_t /*stream*/, void* /*to*/, const void* /*from*/,
                      std::size_t /*bytes*/) {}

  // The host waited for a stream, or for all of them; what it queues later comes after that.
  virtual void host_synchronized(std::uint64_t /*stream*/) {}
  virtual void host_synchronized_all() {}
  [[nodiscard]] virtual std::uint64_t host_order() const { return 0; }
  // The host changed memory, freed it, or dropped everything that ran.
  virtual void host_wrote(const void* /*at*/, std::size_t /*bytes*/) {}
  virtual void dropped_all() {}

  // Bulk copies: `to` and `from` are whole; a copy's own accesses lie between its start and the
  // wait that ends with it. Barriers are numbered within their block, their phases and the groups
  // of a thread from 1.
  virtual void barrier_published(const ThreadId& /*thread*/, std::uint32_t /*barrier*/) {}
  virtual void barrier_used(const Access& /*access*/, std::uint32_t /*barrier*/) {}
  virtual void bulk_load(const ThreadId& /*thread*/, Site /*site*/, void* /*to*/,
                         const void* /*from*/, std::uint32_t /*bytes*/, std::uint32_t /*barrier*/,
                         std::uint32_t /*phase*/) {}
  virtual void barrier_arrived(const ThreadId& /*thread*/, std::uint32_t /*barrier*/) {}
  virtual void barrier_awaited(const ThreadId& /*thread*/, std::uint32_t /*barrier*/,
                               std::uint32_t /*phases*/) {}
  virtual void bulk_store(const ThreadId& /*thread*/, Site /*site*/, void* /*to*/,
                          const void* /*from*/, std::uint32_t /*bytes*/, std::uint32_t /*group*/) {}
  virtual void bulk_awaited(const ThreadId& /*thread*/, std::uint32_t /*group*/,
                            bool /*only_read*/) {}
  virtual void bulk_fenced(const ThreadId& /*thread*/, MemorySpace /*space*/) {}

  // True if a load of this thread since the last call returned something older than the newest:
  // then it must not sleep until memory changes.
  virtual bool took_stale(const ThreadId& /*thread*/) { return false; }
  // A wait of this rank gave up: what it read does not count as used.
  virtual void wait_expired(int /*rank*/) {}

  // A new schedule.
  virtual void restart(std::uint64_t /*seed*/) {}
  // What was wrong with the newest call; empty text if nothing.
  [[nodiscard]] virtual bool violated() const { return false; }
  [[nodiscard]] virtual std::string violation() const { return {}; }
};

// Sequential consistency: memory is what it looks like, and every access happens at once.
std::unique_ptr<MemoryModel> make_sequential_memory();

// As weak as the PTX memory model allows where it matters; docs/memory-model.md. Which of several
// values a load returns is drawn from `choices`; `memory` names addresses in reports.
std::unique_ptr<MemoryModel> make_weak_memory(Choices& choices, const DeviceMemory& memory);

}  // namespace afdep::emulator
