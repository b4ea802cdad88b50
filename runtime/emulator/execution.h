// A kernel in execution: its blocks, warps and threads. Plain state; the scheduler changes it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/emulator/bulk.h"
#include "runtime/emulator/exhaustive.h"
#include "runtime/emulator/fiber.h"
#include "runtime/emulator/memory_model.h"
#include "runtime/emulator/stream_queue.h"

namespace afdep::emulator {

class Scheduler;
struct Block;
struct Warp;

constexpr int kLanes = 32;

enum class ThreadState : std::uint8_t {
  kRunnable,
  kPolling,         // asleep in a wait for memory
  kCollective,      // waits for the other lanes
  kBarrier,         // waits for the other threads of the block
  kPreviousKernel,  // waits for the kernel before this one
  kBulk,            // waits for bulk copies
  kEnded,
};

enum class Collective : std::uint8_t { kSync, kBallot, kMatch, kReduceOr, kShuffle, kShuffleUp };

// A wait for memory, as device code describes it at each poll that missed.
struct Wait {
  const void* at = nullptr;
  std::uint32_t phase = 0;
  std::uint32_t peer = 0;
  std::uint32_t item = 0;
  std::uint32_t seen = 0;
  std::uint32_t expected = 0;

  // Another look of the same wait may have seen another word.
  [[nodiscard]] bool same_wait(const Wait& other) const {
    return phase == other.phase && peer == other.peer && item == other.item &&
           expected == other.expected;
  }
};

struct Thread {
  Scheduler* scheduler = nullptr;
  Warp* warp = nullptr;
  FiberContext context = nullptr;
  FiberStack stack;  // none before the first instruction
  ThreadId id;
  std::uint32_t lane = 0;
  ThreadState state = ThreadState::kRunnable;

  Wait wait;                         // of the newest poll that missed
  bool waiting = false;              // `wait` and `wait_start_ns` belong to a wait that goes on
  std::uint32_t wait_doublings = 0;  // of a wait whose bound is unknown
  std::uint64_t wait_start_ns = 0;
  std::uint64_t wake_ns = 0;          // kPolling: when virtual time wakes it
  BulkWait bulk_wait;                 // kBulk
  int barrier_looks = 0;              // barrier_passed() said no so often,
  std::uint64_t changes_at_look = 0;  // and that many changes of the block were known by then
  std::uint64_t look = 0;             // number of the newest store when this round of polls began
  std::size_t poll_bucket = 0;        // kPolling
  Thread* next_poller = nullptr;      // in the list of its bucket
  Thread* previous_poller = nullptr;

  std::uint32_t hops = 0;  // messages on the longest chain that this thread has seen the end of
  bool at_access = false;  // of an exhaustive exploration: stands before an access

  void* sanitizer = nullptr;  // what a sanitizer keeps of the fiber
};

struct Warp {
  Block* block = nullptr;
  std::span<Thread> threads;   // 32, fewer in a ragged last warp
  std::uint32_t existing = 0;  // lanes
  std::uint32_t live = 0;      // that have not ended
  std::uint32_t runnable = 0;
  std::uint32_t unit = 0;           // of an exhaustive exploration
  std::int32_t runnable_slot = -1;  // in the scheduler's list; -1: no lane is runnable

  // The collective that lanes are arriving at.
  Collective kind = Collective::kSync;
  std::uint32_t arrived = 0;
  std::array<std::uint32_t, kLanes> values{};
  std::array<std::uint32_t, kLanes> operands{};
  // Of the collective that completed last: nobody arrives at the next but one before all lanes have
  // read it.
  std::array<std::uint32_t, kLanes> results{};
};

struct Block {
  KernelRun* run = nullptr;
  int index = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<std::byte>
      shared;  // from a 16-byte boundary on, then bytes that must keep their pattern
  std::size_t shared_offset = 0;
  int live = 0;
  int at_barrier = 0;
  std::vector<BulkBarrierState> bulk_barriers;  // in the order of their initialisation
  std::vector<BulkGroups> bulk_groups;          // by thread
  std::uint64_t looked_changes = 0;             // ends of phases of barriers that threads look at
  bool released = false;                        // called release_next_kernel
};

struct KernelRun {
  const KernelLaunch* launch = nullptr;  // of the queued operation that owns this
  QueuedOperation* queued = nullptr;     // that owns this
  StreamQueue* stream = nullptr;
  std::uint64_t number = 0;      // of the launch on this backend, from 1
  std::uint64_t on_stream = 0;   // of the launch on its stream, from 1
  std::uint64_t timeout_ns = 0;  // bound of its waits; 0: unknown
  bool generation_known = false;
  KernelRun* previous = nullptr;  // awaited by await_previous_kernel; null once it has completed
  KernelRun* next = nullptr;      // the kernel whose `previous` this is
  std::vector<int> order;         // of the blocks' start
  std::size_t started = 0;        // blocks
  int ended = 0;                  // blocks
  int released = 0;               // blocks that released the next kernel or ended
  std::vector<std::unique_ptr<Block>> live;
  std::uint32_t hops = 0;  // of its threads
  // Of an exhaustive exploration: what comes before the kernel's start, before the start of the
  // next one, and before its end.
  Clock start_clock, release_clock, end_clock;

  [[nodiscard]] bool complete() const { return ended == launch->grid; }
  [[nodiscard]] bool next_may_start() const { return released == launch->grid; }
};

// What a fiber stopped for, or what the scheduler found. Described by report.h.
struct Fault {
  enum class Kind : std::uint8_t {
    kNone,
    kUnowned,  // access to memory that nobody allocated
    kMisaligned,
    kOutsideRanges,  // store where the rank may not write
    kHostScope,      // atomic access of GPU scope to memory that the host shares
    kTrap,
    kSignal,  // the machine refused an instruction
    kStackOverflow,
    kDivergedWarp,    // a collective that not all lanes can reach
    kDivergedBlock,   // a barrier that not all threads can reach
    kSharedTooSmall,  // shared_memory<T>() larger than launched
    kSharedOverrun,   // a write behind the block's shared memory
    kSharedAddress,   // add_shared() outside shared memory
    kRawAccess,       // to global memory, not through the device headers
    kBulkMisuse,      // of bulk copies; `detail` says how
    kMemory,          // what the memory model says
    kLivelock,
    kStall,      // nothing can run
    kNoMemory,   // for a stack
    kRedundant,  // an exhaustive exploration goes on with another schedule
  };

  Kind kind = Kind::kNone;
  const Thread* thread = nullptr;
  const void* address = nullptr;
  std::uint64_t bytes = 0;  // of the access; the signal's number; the limit
  bool store = false;
  const char* operation = "";  // the device function, e.g. "ballot"
  const char* detail = "";     // kBulkMisuse: what is wrong, a format of `values`
  std::array<std::uint64_t, 2> values{};
  Site site = 0;  // of the call
};

}  // namespace afdep::emulator
