// Scheduler: bulk copies. A copy reads its source and writes its destination at times of the
// schedule's choosing between its start and the wait that ends with it.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

Fault misuse(const char* operation, const char* detail, const void* address = nullptr,
             std::uint64_t value = 0, std::uint64_t limit = 0) {
  Fault fault;
  fault.kind = Fault::Kind::kBulkMisuse;
  fault.operation = operation;
  fault.detail = detail;
  fault.address = address;
  fault.values = {value, limit};
  return fault;
}

bool aligned(const void* at) { return reinterpret_cast<std::uintptr_t>(at) % kBulkAlignment == 0; }

BulkGroups& groups_of(Thread& thread) {
  return thread.warp->block->bulk_groups[static_cast<std::size_t>(thread.id.thread)];
}

std::uint32_t index_of(const Thread& thread) {
  return static_cast<std::uint32_t>(thread.id.thread);
}

void end_phase(Block& block, BulkBarrierState& barrier) {
  ++barrier.phase;
  if (barrier.looked_at) ++block.looked_changes;
}

// True if everything that `wait` is for has happened.
bool satisfied(const Block& block, std::uint32_t thread, const BulkWait& wait) {
  if (wait.kind == BulkWait::Kind::kChange) return block.looked_changes != wait.seen;
  if (wait.kind == BulkWait::Kind::kBarrier) {
    return (block.bulk_barriers[wait.barrier].phase & 1u) != wait.parity;
  }
  return std::ranges::all_of(block.bulk_groups[thread].open, [&](const BulkGroup& group) {
    if (group.number > wait.group) return true;
    return (wait.kind == BulkWait::Kind::kRead ? group.unread : group.incomplete) == 0;
  });
}

}  // namespace

bool Scheduler::is_shared(const Block& block, const void* at, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(block.shared.data() + block.shared_offset);
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::size_t size = block.run->launch->shared_bytes;
  return address >= begin && address - begin <= size && bytes <= size - (address - begin);
}

void Scheduler::init_barrier(Thread& self, const void* barrier, Site site) {
  preempt(self);
  Block& block = *self.warp->block;
  if (!is_shared(block, barrier, 8)) {
    stop(self, misuse("init_barrier", "the barrier is not in the block's shared memory", barrier),
         site);
  }
  if (reinterpret_cast<std::uintptr_t>(barrier) % 8 != 0) {
    stop(self, misuse("init_barrier", "the barrier is not 8-byte aligned", barrier), site);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  for (const BulkBarrierState& made : block.bulk_barriers) {
    if (made.address == address) {
      stop(self, misuse("init_barrier", "the barrier is initialised already", barrier), site);
    }
  }
  if (block.bulk_barriers.size() == kMaxBulkBarriers) {
    stop(self,
         misuse("init_barrier", "a block has more barriers than the emulator numbers", barrier,
                kMaxBulkBarriers),
         site);
  }
  block.bulk_barriers.push_back({.address = address, .made_by = &self});
  model_->store_shared({self.id, Scope::kThread, const_cast<void*>(barrier), 8, site});
  check_model(self);
  progress();
}

void Scheduler::publish_barriers(Thread& self) {
  preempt(self);
  Block& block = *self.warp->block;
  for (std::size_t i = 0; i < block.bulk_barriers.size(); ++i) {
    BulkBarrierState& barrier = block.bulk_barriers[i];
    if (barrier.made_by != &self || barrier.published) continue;
    barrier.published = true;
    model_->barrier_published(self.id, static_cast<std::uint32_t>(i));
  }
}

// The index of a barrier that may be used; stops the run otherwise.
std::uint32_t Scheduler::usable_barrier(Thread& self, const char* operation, const void* barrier,
                                        Site site) {
  Block& block = *self.warp->block;
  const auto address = reinterpret_cast<std::uintptr_t>(barrier);
  for (std::size_t i = 0; i < block.bulk_barriers.size(); ++i) {
    if (block.bulk_barriers[i].address != address) continue;
    if (!block.bulk_barriers[i].published) {
      stop(self,
           misuse(operation,
                  "the barrier was initialised, but publish_barriers was not called"
                  " after that by the same thread",
                  barrier),
           site);
    }
    const auto index = static_cast<std::uint32_t>(i);
    model_->barrier_used({self.id, Scope::kThread, const_cast<void*>(barrier), 8, site}, index);
    check_model(self);
    return index;
  }
  stop(self, misuse(operation, "the barrier is not initialised", barrier), site);
}

// What both kinds of copies have in common.
void Scheduler::check_bulk(Thread& self, const char* operation, const void* shared,
                           const void* global, std::uint32_t bytes, bool store, Site site) {
  if (bytes == 0 || bytes % kBulkAlignment != 0) {
    stop(self,
         misuse(operation, "copies {} bytes, which is no multiple of {}", nullptr, bytes,
                kBulkAlignment),
         site);
  }
  if (!aligned(shared)) {
    stop(self, misuse(operation, "the address in shared memory is not 16-byte aligned", shared),
         site);
  }
  if (!aligned(global)) {
    stop(self, misuse(operation, "the address in global memory is not 16-byte aligned", global),
         site);
  }
  if (!is_shared(*self.warp->block, shared, bytes)) {
    stop(self,
         misuse(operation, "{} bytes are not all in the block's {} bytes of shared memory", shared,
                bytes, self.warp->block->run->launch->shared_bytes),
         site);
  }
  const Allocation* const allocation = memory_.find(global, bytes);
  const auto refuse = [&](Fault::Kind kind) {
    Fault fault;
    fault.kind = kind;
    fault.address = global;
    fault.bytes = bytes;
    fault.store = store;
    stop(self, fault, site);
  };
  if (allocation == nullptr) refuse(Fault::Kind::kUnowned);
  if (!store) return;
  if (!memory_.may_store(self.id.rank, global, bytes)) refuse(Fault::Kind::kOutsideRanges);
  if (allocation->owner < 0 || allocation->owner == self.id.rank) return;
  if (memory_.foreign_store(self.id.rank, global, bytes) == DeviceMemory::Foreign::kRefused) {
    refuse(Fault::Kind::kOutsideRanges);
  }
  count_store(self, *allocation, AccessKind::kStore, bytes, false);
}

void Scheduler::bulk_load(Thread& self, void* to, const void* from, std::uint32_t bytes,
                          const void* barrier, Site site) {
  preempt(self);
  check_bulk(self, "bulk_load", to, from, bytes, false, site);
  const std::uint32_t index = usable_barrier(self, "bulk_load", barrier, site);
  Block& block = *self.warp->block;
  BulkBarrierState& state = block.bulk_barriers[index];
  if (state.arrived) {
    stop(self,
         misuse("bulk_load", "the barrier's phase {} already has its one load", barrier,
                state.phase),
         site);
  }
  state.arrived = true;
  state.missing_bytes = bytes;
  state.loaded = state.phase + 1;
  model_->bulk_load(self.id, site, to, from, bytes, index, state.phase + 1);
  check_model(self);
  copies_.push_back({&block, index_of(self), index, 0, to, from, bytes, false, {}});
  progress();
}

// The wait for a barrier that may be used; stops the run if there is none.
BulkWait Scheduler::barrier_wait(Thread& self, const char* operation, const void* barrier,
                                 std::uint32_t parity, Site site) {
  const std::uint32_t index = usable_barrier(self, operation, barrier, site);
  if (parity > 1) {
    stop(self, misuse(operation, "the parity is {}, must be at most {}", barrier, parity, 1), site);
  }
  return {BulkWait::Kind::kBarrier, index, parity, 0, 0};
}

void Scheduler::pass_barrier(Thread& self, const BulkWait& wait) {
  BulkBarrierState& state = self.warp->block->bulk_barriers[wait.barrier];
  state.awaited = state.phase;
  model_->barrier_awaited(self.id, wait.barrier, state.phase);
}

void Scheduler::await_barrier(Thread& self, const void* barrier, std::uint32_t parity, Site site) {
  preempt(self);
  const BulkWait wait = barrier_wait(self, "await_barrier", barrier, parity, site);
  await_bulk(self, wait);
  pass_barrier(self, wait);
}

// A thread may look at several barriers in turn, and a warp's lanes each at their own before they
// meet: only when no barrier that anybody looks at has ended a phase for two looks, so that every
// lane has looked in between, does the next one wait for such an end. None spins, and no look waits
// for a barrier in particular.
bool Scheduler::barrier_passed(Thread& self, const void* barrier, std::uint32_t parity, Site site) {
  constexpr int kIdleLooks = 2;
  preempt(self);
  Block& block = *self.warp->block;
  const BulkWait wait = barrier_wait(self, "barrier_passed", barrier, parity, site);
  block.bulk_barriers[wait.barrier].looked_at = true;
  if (self.changes_at_look != block.looked_changes) self.barrier_looks = 0;
  if (!satisfied(block, index_of(self), wait)) {
    self.changes_at_look = block.looked_changes;
    if (self.barrier_looks < kIdleLooks) {
      ++self.barrier_looks;
      switch_out(self);
      return false;
    }
    BulkWait change = wait;
    change.kind = BulkWait::Kind::kChange;
    change.seen = block.looked_changes;
    await_bulk(self, change);
    self.barrier_looks = 0;
    if (!satisfied(block, index_of(self), wait)) return false;
  }
  self.barrier_looks = 0;
  pass_barrier(self, wait);
  return true;
}

void Scheduler::arrive_barrier(Thread& self, const void* barrier, Site site) {
  preempt(self);
  const std::uint32_t index = usable_barrier(self, "arrive_barrier", barrier, site);
  Block& block = *self.warp->block;
  BulkBarrierState& state = block.bulk_barriers[index];
  if (state.arrived) {
    stop(self,
         misuse("arrive_barrier", "the barrier's phase {} has its one arrival already: a load",
                barrier, state.phase),
         site);
  }
  end_phase(block, state);
  model_->barrier_arrived(self.id, index);
  progress();
  wake_bulk_waiters(block);
}

void Scheduler::bulk_store(Thread& self, void* to, const void* from, std::uint32_t bytes,
                           Site site) {
  preempt(self);
  check_bulk(self, "bulk_store", from, to, bytes, true, site);
  BulkGroups& groups = groups_of(self);
  if (groups.open.empty() || groups.open.back().committed) {
    groups.open.push_back({groups.committed + 1, false, 0, 0});
  }
  BulkGroup& group = groups.open.back();
  ++group.unread;
  ++group.incomplete;
  groups.used = group.number;
  model_->bulk_store(self.id, site, to, from, bytes, group.number);
  check_model(self);
  copies_.push_back({self.warp->block,
                     index_of(self),
                     BulkCopy::kNoBarrier,
                     group.number,
                     to,
                     from,
                     bytes,
                     false,
                     {}});
  progress();
}

void Scheduler::bulk_commit(Thread& self) {
  preempt(self);
  BulkGroups& groups = groups_of(self);
  // A group may be empty.
  ++groups.committed;
  if (!groups.open.empty()) groups.open.back().committed = true;
}

void Scheduler::bulk_await_groups(Thread& self, std::uint32_t pending, bool only_read) {
  preempt(self);
  const std::uint32_t committed = groups_of(self).committed;
  const std::uint32_t group = committed > pending ? committed - pending : 0;
  await_bulk(self, {only_read ? BulkWait::Kind::kRead : BulkWait::Kind::kComplete, 0, 0, group, 0});
  groups_of(self).awaited = std::max(groups_of(self).awaited, group);
  model_->bulk_awaited(self.id, group, only_read);
}

void Scheduler::fence_bulk(Thread& self, MemorySpace space) {
  preempt(self);
  model_->bulk_fenced(self.id, space);
}

void Scheduler::await_bulk(Thread& self, const BulkWait& wait) {
  self.bulk_wait = wait;
  while (!satisfied(*self.warp->block, index_of(self), wait)) {
    make_unrunnable(self, ThreadState::kBulk);
    switch_out(self);
  }
}

// One copy goes on: it reads its source or writes its destination.
void Scheduler::advance_copy(std::size_t index) {
  BulkCopy& copy = copies_[index];
  Block& block = *copy.block;
  std::vector<BulkGroup>& open = block.bulk_groups[copy.thread].open;
  const bool is_store = copy.barrier == BulkCopy::kNoBarrier;
  const auto group =
      is_store ? std::ranges::find(open, copy.group, &BulkGroup::number) : open.end();
  if (!copy.read) {
    const auto* const source = static_cast<const std::byte*>(copy.from);
    copy.data.assign(source, source + copy.bytes);
    copy.read = true;
    if (is_store) --group->unread;
  } else {
    std::memcpy(copy.to, copy.data.data(), copy.bytes);
    if (is_store) {
      note_stored(copy.to, copy.bytes);
      if (--group->incomplete == 0 && group->committed) open.erase(group);
    } else {
      BulkBarrierState& barrier = block.bulk_barriers[copy.barrier];
      barrier.missing_bytes -= copy.bytes;
      if (barrier.missing_bytes == 0) {
        barrier.arrived = false;
        end_phase(block, barrier);
      }
    }
    if (index + 1 != copies_.size()) copies_[index] = std::move(copies_.back());
    copies_.pop_back();
  }
  progress();
  wake_bulk_waiters(block);
}

void Scheduler::wake_bulk_waiters(Block& block) {
  for (Thread& thread : block.threads) {
    if (thread.state == ThreadState::kBulk &&
        satisfied(block, index_of(thread), thread.bulk_wait)) {
      make_runnable(thread);
    }
  }
}

// What a thread must not leave behind. True, and a fault, if it did.
bool Scheduler::leaves_stores(const Thread& thread) {
  const BulkGroups& groups =
      thread.warp->block->bulk_groups[static_cast<std::size_t>(thread.id.thread)];
  if (groups.used <= groups.awaited) return false;
  fault_ =
      misuse("bulk_store", groups.used > groups.committed
                               ? "the thread ends with stores that it did not commit (bulk_commit)"
                               : "the thread ends while its stores may still read shared memory "
                                 "(bulk_await_read or bulk_await is missing)");
  fault_.thread = &thread;
  return true;
}

// What a block must not leave behind. True, and a fault, if it did; else its stores complete.
bool Scheduler::leaves_loads(Block& block) {
  for (const BulkBarrierState& barrier : block.bulk_barriers) {
    if (barrier.loaded <= barrier.awaited) continue;
    fault_ = misuse("bulk_load",
                    "the block ends with a load into its shared memory that nobody waited for "
                    "(await_barrier)",
                    reinterpret_cast<const void*>(barrier.address));
    fault_.thread = barrier.made_by;
    return true;
  }
  for (std::size_t i = copies_.size(); i-- > 0;) {
    while (i < copies_.size() && copies_[i].block == &block) advance_copy(i);
  }
  return false;
}

}  // namespace afdep::emulator
