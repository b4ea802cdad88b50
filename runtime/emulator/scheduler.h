// Runs the kernels of all ranks, one fiber per CUDA thread, in an order that a seed decides.
#pragma once

#include <array>
#include <csetjmp>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/device_memory.h"
#include "runtime/emulator/execution.h"
#include "runtime/emulator/injection.h"
#include "runtime/emulator/ledger.h"
#include "runtime/emulator/memory_model.h"
#include "runtime/emulator/strategy.h"
#include "runtime/support/result.h"

namespace afdep::emulator {

enum class Memory : std::uint8_t {
  kWeak,        // docs/memory-model.md
  kSequential,  // every access happens at once, and none is a mistake
};

struct ScheduleOptions {
  std::uint64_t seed = 1;
  Explore explore = Explore::kRandom;
  // kPct: how many ordering constraints a mistake may need to show, at most.
  int depth = 3;
  // kExhaustive: which schedule is next. Not owned.
  Exploration* exploration = nullptr;
  // What loads return and which accesses must be ordered.
  Memory memory = Memory::kWeak;
  // True: nothing can run but some thread waits for memory is an error. False: virtual time passes,
  // so that waits expire.
  bool stop_on_stall = false;
  // Blocks of one rank that are resident at once, at most. Any number by default: every block of
  // every started kernel makes progress, however many wait.
  int resident_blocks = std::numeric_limits<int>::max();
  // Accesses without a store, a barrier or the end of a thread after which a run counts as a
  // livelock.
  std::uint64_t fruitless_accesses = 50'000'000;
};

// Figures of everything that ran since the last set_seed().
struct ScheduleCounts {
  std::uint64_t switches = 0;  // to a thread
  std::uint64_t accesses = 0;  // to global memory
  std::uint64_t trace = 0;     // hash of all choices: equal traces are equal schedules
};

class Scheduler {
 public:
  Scheduler(DeviceMemory& memory, const ScheduleOptions& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // ---- for the backend ----
  StreamQueue* add_stream();
  void remove_stream(StreamQueue* stream);
  // Runs all streams until `target`, or if it is null every stream, is empty. After a failure
  // (kVerification) nothing is queued anywhere and the scheduler is as good as new.
  Result<void> run(StreamQueue* target);
  // The host changed memory: threads that wait for memory look again.
  void memory_changed();
  void host_wrote(const void* at, std::size_t bytes) {
    model_->host_wrote(at, bytes);
    memory_changed();
  }
  void restart(std::uint64_t seed);
  void set_stop_on_stall(bool stop) { options_.stop_on_stall = stop; }

  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  // Virtual time that also moves on by a nanosecond an access: it puts the events of a run in
  // order.
  [[nodiscard]] std::uint64_t schedule_ns() const { return now_ns_ + counts_.accesses; }
  [[nodiscard]] ScheduleCounts counts() const;
  // What the memory model draws from: it belongs to the schedule.
  Choices& choices() { return choices_; }
  Ledger& ledger() { return ledger_; }
  // And counts hops from here on, until stop_counting_hops().
  void clear_ledger();
  [[nodiscard]] std::uint32_t longest_chain() const { return longest_chain_; }
  void stop_counting_hops();
  void inject(const Injection& injection);
  [[nodiscard]] bool injected() const { return injected_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] const MemoryModel& model() const { return *model_; }
  [[nodiscard]] const std::vector<std::unique_ptr<StreamQueue>>& streams() const {
    return streams_;
  }

  // ---- for the hooks: called on the fiber of `self` ----
  enum class AccessKind : std::uint8_t {
    kLoad,
    kLoadInput,
    kLoadPacket,
    kAcquire,
    kLoadRelaxed,
    kLoadAbort,
    kStore,
    kStorePacket,
    kRelease,
    kStoreFlag,
    kStoreRelaxed,
    kClaim,
    kTake,
  };
  // Loads into or stores from `value`; for kClaim and kTake it points to a uint32_t result.
  void access(Thread& self, AccessKind kind, Scope scope, const void* at, void* value,
              std::uint32_t bytes, Site site);
  // A load or store that is no call of the device headers: of shared memory, of what is the
  // thread's own, or a mistake.
  void raw_access(Thread& self, const void* at, std::uint64_t bytes, bool store, Site site);
  void poll_missed(Thread& self, const Wait& wait);
  // Number of the newest store to an abort word of the thread's rank; 0: none yet.
  [[nodiscard]] std::uint64_t newest_abort(const Thread& thread) const;
  std::uint32_t collective(Thread& self, Collective kind, std::uint32_t value,
                           std::uint32_t operand, Site site);
  void sync_block(Thread& self, Site site);
  void await_previous_kernel(Thread& self);
  void release_next_kernel(Thread& self);
  void* shared_memory(Thread& self, std::size_t bytes, Site site);
  // Returns what the counter held.
  std::uint32_t add_shared(Thread& self, std::uint32_t* counter, std::uint32_t amount, Site site);
  void init_barrier(Thread& self, const void* barrier, Site site);
  void publish_barriers(Thread& self);
  void bulk_load(Thread& self, void* to, const void* from, std::uint32_t bytes, const void* barrier,
                 Site site);
  void await_barrier(Thread& self, const void* barrier, std::uint32_t parity, Site site);
  bool barrier_passed(Thread& self, const void* barrier, std::uint32_t parity, Site site);
  void arrive_barrier(Thread& self, const void* barrier, Site site);
  void bulk_store(Thread& self, void* to, const void* from, std::uint32_t bytes, Site site);
  void bulk_commit(Thread& self);
  void bulk_await_groups(Thread& self, std::uint32_t pending, bool only_read);
  void fence_bulk(Thread& self, MemorySpace space);
  void fence_flags(Thread& self);
  std::uint64_t clock_ns(Thread& self);
  [[noreturn]] void stop(Thread& self, const Fault& fault, Site site = 0);

 private:
  static constexpr std::size_t kBuckets = 4096;

  static void enter_fiber(boost::context::detail::transfer_t from);
  void loop(StreamQueue* target);
  [[nodiscard]] bool is_done(const StreamQueue* target) const;
  void switch_to(Thread& thread);
  void switch_out(Thread& self);
  void preempt(Thread& self);
  Thread& pick();

  // Exhaustive exploration.
  bool explore();
  void stand_before_access(Thread& self, AccessKind kind, const Allocation& allocation,
                           const void* at, std::uint32_t bytes);

  // Streams and kernels.
  void advance_streams();
  bool advance(StreamQueue& stream);
  void start_kernel(QueuedOperation& queued, StreamQueue& stream, KernelRun* previous);
  void know_generation(KernelRun& run);
  bool start_block();
  void end_thread(Thread& thread);
  void end_block(Block& block);
  void end_kernel(KernelRun& run);
  void release(Block& block);

  // Who can run.
  void make_runnable(Thread& thread);
  void make_unrunnable(Thread& thread, ThreadState state);
  void sleep(Thread& self, std::size_t bucket);
  void wake(Thread& thread);
  void wake_pollers(const void* at, std::size_t bucket);
  template <typename Visitor>
  void for_each_poller(const Visitor& visit);
  bool pass_time();

  // Bulk copies.
  static bool is_shared(const Block& block, const void* at, std::size_t bytes);
  std::uint32_t usable_barrier(Thread& self, const char* operation, const void* barrier, Site site);
  void check_bulk(Thread& self, const char* operation, const void* shared, const void* global,
                  std::uint32_t bytes, bool store, Site site);
  BulkWait barrier_wait(Thread& self, const char* operation, const void* barrier,
                        std::uint32_t parity, Site site);
  void pass_barrier(Thread& self, const BulkWait& wait);
  void await_bulk(Thread& self, const BulkWait& wait);
  void wake_bulk_waiters(Block& block);
  void advance_copy(std::size_t index);
  bool leaves_stores(const Thread& thread);
  bool leaves_loads(Block& block);

  // Stops the run if the model found something wrong.
  void check_model(Thread& self);
  void note_stored(const void* at, std::size_t bytes);
  void count_store(const Thread& self, const Allocation& allocation, AccessKind kind,
                   std::uint32_t bytes, bool done_word);
  void see_message(Thread& self, const void* at);
  bool corrupt(AccessKind kind, void* value);
  void kill(int rank);
  void progress() { fruitless_ = 0; }
  void drop_everything();

  DeviceMemory& memory_;
  ScheduleOptions options_;
  std::unique_ptr<MemoryModel> model_;
  Choices choices_;
  std::unique_ptr<Strategy> strategy_;
  StackPool stacks_;
  std::vector<std::unique_ptr<StreamQueue>> streams_;
  std::vector<KernelRun*> starting_;           // kernels with blocks left to start
  std::unordered_map<int, int> resident_;      // blocks by rank
  std::vector<std::unique_ptr<Block>> spare_;  // blocks for reuse
  std::vector<BulkCopy> copies_;               // under way, in no order
  std::uint32_t copy_odds_ = 1;                // once in so many decisions one of them goes on
  std::vector<Warp*> runnable_;                // warps with a runnable lane, in no order
  Warp* last_ = nullptr;                       // where the last lane ran
  std::array<Thread*, kBuckets> pollers_{};    // by hash of the awaited 16 bytes
  // By rank: of the claims, of which its abort word is one.
  std::map<int, std::uint64_t> newest_abort_;
  std::array<std::uint64_t, kBuckets> newest_store_{};
  std::uint64_t newest_change_ = 0;  // of any memory, by the host
  std::uint64_t stores_ = 0;
  std::uint64_t pollers_count_ = 0;
  std::uint64_t launches_ = 0;
  std::uint64_t streams_made_ = 0;
  std::uint64_t now_ns_ = 0;
  std::uint64_t fruitless_ = 0;
  bool streams_dirty_ = false;  // something ended or was released: some stream may go on

  Exploration* exploration_ = nullptr;
  std::vector<std::uint32_t> candidates_;  // of the newest decision
  std::uint32_t slice_ = 1;                // points of interruption left to the running thread
  std::uint32_t given_ = 1;                // how many it had at first

  FiberContext main_ = nullptr;
  Fault fault_;
  ScheduleCounts counts_;

  Ledger ledger_;
  std::unordered_map<std::uint64_t, std::uint32_t>
      chains_;  // by 16 bytes: hops of the newest message
  std::uint32_t longest_chain_ = 0;
  bool counts_hops_ = false;

  Injection injection_;
  std::uint64_t injection_count_ = 0;
  bool injected_ = false;
  int dying_ = -1;  // rank
};

// The thread whose fiber runs on this OS thread; null outside.
Thread* current_thread();

}  // namespace afdep::emulator
