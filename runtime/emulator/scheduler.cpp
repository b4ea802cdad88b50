#include "runtime/emulator/scheduler.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "runtime/emulator/crash_guard.h"
#include "runtime/emulator/fiber_switch.h"
#include "runtime/emulator/report.h"

namespace afdep::emulator {
namespace {

// Not 0: device code takes a time of 0 for "not read yet".
constexpr std::uint64_t kFirstNanosecond = 1'000'000;

// Fill of shared memory: reads as a huge index, an odd address and, as a float, a number nobody
// computes.
constexpr std::byte kPoison{0xa5};
constexpr std::size_t kSharedGuardBytes = 64;
constexpr std::size_t kSharedAlignment = 16;

// Blocks of one rank that start while other threads can run.
constexpr int kEagerBlocks = 32;

thread_local Thread* t_current = nullptr;

// Stacks lie a whole number of pages apart, so their tops would share a few sets of the first
// cache. With 17 pages each this spreads 64 of them over all lines of a page.
std::size_t colour_of(const FiberStack& stack) {
  constexpr std::size_t kStep = 9 * 64;
  return reinterpret_cast<std::uintptr_t>(stack.bottom) / 4096 * kStep % 4096;
}

}  // namespace

// Not inlined: a fiber may go on on another OS thread, where the address of a thread_local differs.
[[gnu::noinline]] Thread* current_thread() { return t_current; }

Scheduler::Scheduler(DeviceMemory& memory, const ScheduleOptions& options)
    : memory_(memory),
      options_(options),
      model_(options.memory == Memory::kWeak ? make_weak_memory(choices_, memory)
                                             : make_sequential_memory()),
      choices_(options.seed),
      strategy_(make_strategy(options.explore, choices_, options.depth)),
      exploration_(options.explore == Explore::kExhaustive ? options.exploration : nullptr) {
  now_ns_ = kFirstNanosecond;
  restart(options.seed);
}

Scheduler::~Scheduler() { drop_everything(); }

void Scheduler::restart(std::uint64_t seed) {
  choices_.restart(seed, exploration_);
  counts_ = {};
  last_ = nullptr;
  options_.seed = seed;
  model_->restart(seed);
  // Copies that happen at once and copies that lag behind everything else.
  constexpr std::array<std::uint32_t, 4> kCopyOdds{1, 4, 64, 1024};
  std::uint64_t state = seed;
  copy_odds_ = kCopyOdds[split_mix(state) % kCopyOdds.size()];
}

ScheduleCounts Scheduler::counts() const {
  ScheduleCounts counts = counts_;
  counts.trace = choices_.trace();
  return counts;
}

// ---- the loop -----------------------------------------------------------------------------------

bool Scheduler::is_done(const StreamQueue* target) const {
  if (target != nullptr) return target->queue.empty();
  return std::ranges::all_of(streams_, [](const auto& stream) { return stream->queue.empty(); });
}

Result<void> Scheduler::run(StreamQueue* target) {
  fault_ = {};
  fruitless_ = 0;
  streams_dirty_ = true;
  if (exploration_ == nullptr) strategy_->restart();
  CrashGuard guard;
  if (sigsetjmp(guard.back(), 1) == 0) {
    loop(target);
  } else {
    const Crash& crash = CrashGuard::crash();
    const bool overflow = stacks_.is_guard(crash.address);
    fault_.kind = overflow ? Fault::Kind::kStackOverflow : Fault::Kind::kSignal;
    fault_.thread = t_current;
    fault_.address = crash.address;
    fault_.bytes = static_cast<std::uint64_t>(crash.signal);
    t_current = nullptr;
  }
  if (fault_.kind == Fault::Kind::kNone) {
    if (is_done(nullptr)) {
      model_->host_synchronized_all();
    } else {
      model_->host_synchronized(target->number);
    }
    return {};
  }
  if (fault_.kind == Fault::Kind::kRedundant) {
    drop_everything();
    return Failure(ErrorCode::kVerification, "the schedule is equivalent to an earlier one");
  }
  Failure failure = describe(fault_, *this, options_);
  drop_everything();
  return failure;
}

void Scheduler::loop(StreamQueue* target) {
  while (fault_.kind == Fault::Kind::kNone) {
    if (dying_ >= 0) {
      kill(std::exchange(dying_, -1));
      injection_ = {};
      injected_ = true;
    }
    if (streams_dirty_) {
      advance_streams();
      if (is_done(target)) return;
    }
    if (!copies_.empty() && (runnable_.empty() || choices_.one_in(copy_odds_))) {
      advance_copy(choices_.pick(static_cast<std::uint32_t>(copies_.size())));
      continue;
    }
    if (exploration_ != nullptr) {
      if (!explore()) fault_.kind = Fault::Kind::kStall;
      continue;
    }
    if (!starting_.empty() && (runnable_.empty() || strategy_->starts_block()) && start_block()) {
      continue;
    }
    if (!runnable_.empty()) {
      switch_to(pick());
    } else if (!streams_dirty_ && !pass_time()) {
      fault_.kind = Fault::Kind::kStall;
    }
  }
}

Thread& Scheduler::pick() {
  Warp* const last = last_ != nullptr && last_->runnable != 0 ? last_ : nullptr;
  last_ = &strategy_->next_warp(runnable_, last);
  return strategy_->next_lane(*last_);
}

void Scheduler::switch_to(Thread& thread) {
  if (thread.context == nullptr) {
    thread.stack = stacks_.take();
    if (thread.stack.bottom == nullptr) {
      fault_.kind = Fault::Kind::kNoMemory;
      fault_.thread = &thread;
      return;
    }
    const std::size_t bytes = StackPool::kBytes - colour_of(thread.stack);
    thread.context =
        boost::context::detail::make_fcontext(thread.stack.bottom + bytes, bytes, &enter_fiber);
  }
  ++counts_.switches;
  given_ = slice_ = strategy_->slice(*thread.warp);
  t_current = &thread;
  thread.context = jump_to_fiber(thread);
  t_current = nullptr;
  strategy_->ran(given_ - slice_);
  if (thread.state == ThreadState::kEnded) end_thread(thread);
}

void Scheduler::enter_fiber(boost::context::detail::transfer_t from) {
  Thread& self = *static_cast<Thread*>(from.data);
  Scheduler& scheduler = *self.scheduler;
  arrived_on_fiber(self);
  scheduler.main_ = from.fctx;
  const KernelLaunch& launch = *self.warp->block->run->launch;
  launch.code->run(launch.args.data());
  scheduler.make_unrunnable(self, ThreadState::kEnded);
  scheduler.switch_out(self);  // for good
}

void Scheduler::switch_out(Thread& self) { main_ = jump_to_main(self, main_); }

void Scheduler::stop(Thread& self, const Fault& fault, Site site) {
  fault_ = fault;
  fault_.thread = &self;
  fault_.site = site;
  for (;;) switch_out(self);  // for good: the loop ends
}

void Scheduler::preempt(Thread& self) {
  if (--slice_ == 0 && exploration_ == nullptr) switch_out(self);
}

// ---- who can run --------------------------------------------------------------------------------

void Scheduler::make_runnable(Thread& thread) {
  Warp& warp = *thread.warp;
  thread.state = ThreadState::kRunnable;
  if (warp.runnable == 0) {
    warp.runnable_slot = static_cast<std::int32_t>(runnable_.size());
    runnable_.push_back(&warp);
    const bool overtakes =
        strategy_->overtakes(warp, t_current == nullptr ? nullptr : t_current->warp);
    if (overtakes && slice_ > 1) {
      given_ -= slice_ - 1;
      slice_ = 1;
    }
  }
  warp.runnable |= 1u << thread.lane;
  // It goes on soon, and its stack is seldom in the cache.
  __builtin_prefetch(thread.context);
  __builtin_prefetch(static_cast<const char*>(thread.context) + 64);
  __builtin_prefetch(static_cast<const char*>(thread.context) + 128);
}

void Scheduler::make_unrunnable(Thread& thread, ThreadState state) {
  Warp& warp = *thread.warp;
  thread.state = state;
  warp.runnable &= ~(1u << thread.lane);
  if (warp.runnable != 0) return;
  const auto slot = static_cast<std::size_t>(warp.runnable_slot);
  runnable_[slot] = runnable_.back();
  runnable_[slot]->runnable_slot = warp.runnable_slot;
  runnable_.pop_back();
  warp.runnable_slot = -1;
}

// ---- blocks -------------------------------------------------------------------------------------

bool Scheduler::start_block() {
  // A grid of any size needs no more memory than this, unless its blocks wait for each other or for
  // peers.
  const int limit = runnable_.empty() || exploration_ != nullptr
                        ? options_.resident_blocks
                        : std::min(options_.resident_blocks, kEagerBlocks);
  const auto count = static_cast<std::uint32_t>(starting_.size());
  const std::uint32_t from = exploration_ != nullptr ? 0 : choices_.pick(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t slot = (from + i) % count;
    KernelRun& run = *starting_[slot];
    if (resident_[run.launch->rank] >= limit) continue;

    std::unique_ptr<Block> block;
    if (spare_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    const KernelLaunch& launch = *run.launch;
    const auto threads = static_cast<std::size_t>(launch.threads);
    block->run = &run;
    block->index = run.order[run.started++];
    block->live = launch.threads;
    block->at_barrier = 0;
    block->released = false;
    block->bulk_barriers.clear();
    block->bulk_groups.assign(threads, BulkGroups{});
    block->shared.assign(launch.shared_bytes + kSharedAlignment + kSharedGuardBytes, kPoison);
    const auto address = reinterpret_cast<std::uintptr_t>(block->shared.data());
    block->shared_offset = (kSharedAlignment - address % kSharedAlignment) % kSharedAlignment;
    const std::uint32_t first_agent =
        model_->block_started({run.number, block->index, launch.threads,
                               block->shared.data() + block->shared_offset, launch.shared_bytes});
    block->threads.assign(threads, Thread{});
    block->warps.assign((threads + kLanes - 1) / kLanes, Warp{});
    for (std::size_t w = 0; w < block->warps.size(); ++w) {
      Warp& warp = block->warps[w];
      const std::size_t lanes = std::min<std::size_t>(kLanes, threads - w * kLanes);
      warp.block = block.get();
      warp.threads = std::span(block->threads).subspan(w * kLanes, lanes);
      warp.existing = lanes == kLanes ? ~0u : (1u << lanes) - 1;
      warp.live = warp.existing;
      if (exploration_ != nullptr) {
        warp.unit = exploration_->unit(run.stream->number, run.on_stream, block->index,
                                       static_cast<int>(w));
        exploration_->clock(warp.unit).join(run.start_clock);
      }
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        Thread& thread = warp.threads[lane];
        thread.scheduler = this;
        thread.warp = &warp;
        thread.lane = static_cast<std::uint32_t>(lane);
        const std::size_t index = w * kLanes + lane;
        thread.id = {launch.rank, run.number, block->index, static_cast<int>(index),
                     first_agent + static_cast<std::uint32_t>(index)};
        make_runnable(thread);
      }
    }
    ++resident_[launch.rank];
    run.live.push_back(std::move(block));
    if (run.started == run.order.size()) {
      starting_.erase(starting_.begin() + static_cast<std::ptrdiff_t>(slot));
    }
    return true;
  }
  return false;
}

void Scheduler::end_thread(Thread& thread) {
  Warp& warp = *thread.warp;
  Block& block = *warp.block;
  progress();
  stacks_.give_back(thread.stack);
  thread.stack = {};
  forget_fiber(thread);
  warp.live &= ~(1u << thread.lane);
  --block.live;
  block.run->hops = std::max(block.run->hops, thread.hops);
  if (exploration_ != nullptr) block.run->end_clock.join(exploration_->clock(warp.unit));
  if (leaves_stores(thread)) return;
  model_->thread_ended(thread.id);
  if (model_->violated()) {
    fault_.kind = Fault::Kind::kMemory;
    fault_.thread = &thread;
    return;
  }
  if (warp.arrived != 0) {
    fault_.kind = Fault::Kind::kDivergedWarp;
    fault_.thread = &thread;
    fault_.operation = name_of(warp.kind);
  } else if (block.at_barrier != 0) {
    fault_.kind = Fault::Kind::kDivergedBlock;
    fault_.thread = &thread;
    fault_.operation = "sync_block";
  } else if (block.live == 0) {
    end_block(block);
  }
}

void Scheduler::end_block(Block& block) {
  KernelRun& run = *block.run;
  const auto guard =
      std::span(block.shared).subspan(block.shared_offset + run.launch->shared_bytes);
  if (!std::ranges::all_of(guard, [](std::byte byte) { return byte == kPoison; })) {
    fault_.kind = Fault::Kind::kSharedOverrun;
    fault_.thread = &block.threads.front();
    return;
  }
  if (leaves_loads(block)) return;
  model_->block_ended(block.threads.front().id);
  release(block);
  last_ = nullptr;
  --resident_[run.launch->rank];
  const auto mine =
      std::ranges::find(run.live, &block, [](const auto& live) { return live.get(); });
  std::swap(*mine, run.live.back());
  spare_.push_back(std::move(run.live.back()));
  run.live.pop_back();
  if (++run.ended == run.launch->grid) end_kernel(run);
}

void* Scheduler::shared_memory(Thread& self, std::size_t bytes, Site site) {
  Block& block = *self.warp->block;
  if (bytes > block.run->launch->shared_bytes) {
    Fault fault;
    fault.kind = Fault::Kind::kSharedTooSmall;
    fault.bytes = bytes;
    stop(self, fault, site);
  }
  return block.shared.data() + block.shared_offset;
}

// ---- after a failure ----------------------------------------------------------------------------

// As if the process of a rank had ended: its threads never run again, and nothing of it is queued.
void Scheduler::kill(int rank) {
  // Its copies under way do not arrive.
  std::erase_if(copies_,
                [rank](const BulkCopy& copy) { return copy.block->run->launch->rank == rank; });
  for (const auto& stream : streams_) {
    const bool mine = std::ranges::any_of(stream->queue, [rank](const QueuedOperation& queued) {
      return queued.operation.kind == Operation::Kind::kKernel &&
             queued.operation.launch.rank == rank;
    });
    if (!mine) continue;
    for (QueuedOperation& queued : stream->queue) {
      if (queued.run == nullptr) continue;
      std::erase(starting_, queued.run.get());
      for (const auto& block : queued.run->live) {
        for (Thread& thread : block->threads) {
          if (thread.state == ThreadState::kPolling) wake(thread);
          if (thread.state == ThreadState::kRunnable) {
            make_unrunnable(thread, ThreadState::kEnded);
          }
          if (thread.stack.bottom == nullptr) continue;
          stacks_.give_back(thread.stack);
          forget_fiber(thread);
        }
      }
    }
    stream->queue.clear();
  }
  resident_[rank] = 0;
  last_ = nullptr;
  streams_dirty_ = true;
}

void Scheduler::drop_everything() {
  for (const auto& stream : streams_) {
    for (QueuedOperation& queued : stream->queue) {
      const Operation& operation = queued.operation;
      if (operation.kind == Operation::Kind::kRecord) {
        // Nothing may wait forever for what was dropped.
        operation.event->completed = std::max(operation.event->completed, operation.recording);
      }
      if (queued.run == nullptr) continue;
      for (const auto& block : queued.run->live) {
        for (Thread& thread : block->threads) {
          if (thread.stack.bottom == nullptr) continue;
          stacks_.give_back(thread.stack);
          forget_fiber(thread);
        }
      }
    }
    stream->queue.clear();
  }
  model_->dropped_all();
  starting_.clear();
  copies_.clear();
  resident_.clear();
  runnable_.clear();
  last_ = nullptr;
  pollers_.fill(nullptr);
  pollers_count_ = 0;
  streams_dirty_ = false;
}

}  // namespace afdep::emulator
