// Scheduler: accesses to global memory, and the threads that sleep until memory changes.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

constexpr std::uint64_t kNever = UINT64_MAX;
// First nap of a wait whose bound is unknown; each further nap is twice as long.
constexpr std::uint64_t kFirstNapNs = 1'000;

constexpr bool is_store(Scheduler::AccessKind kind) {
  return kind >= Scheduler::AccessKind::kStore;
}

// The same 16 bytes have the same number in every run that allocates the same.
std::uint64_t cell_of(const Allocation& allocation, const void* at) {
  return allocation.number << 40 | (reinterpret_cast<std::uintptr_t>(at) - allocation.begin) >> 4;
}

std::uint32_t byte_of(const Allocation& allocation, const void* at) {
  return (reinterpret_cast<std::uintptr_t>(at) - allocation.begin) & 15u;
}

// No access is larger than 16 bytes or crosses such a boundary. Not of the address: a schedule must
// not depend on where memory happens to lie.
std::size_t bucket_of(const Allocation& allocation, const void* at) {
  return cell_of(allocation, at) * 0x9e3779b97f4a7c15u >> 52;  // 12 bits
}

bool same_unit(const void* a, const void* b) {
  return reinterpret_cast<std::uintptr_t>(a) >> 4 == reinterpret_cast<std::uintptr_t>(b) >> 4;
}

std::uint64_t later(std::uint64_t from, std::uint64_t by) {
  return by > kNever - from ? kNever : from + by;
}

}  // namespace

void Scheduler::access(Thread& self, AccessKind kind, Scope scope, const void* at, void* value,
                       std::uint32_t bytes, Site site) {
  static_assert(kBuckets == 1u << 12);
  if (exploration_ == nullptr) preempt(self);
  ++counts_.accesses;
  const auto refuse = [&](Fault::Kind why) {
    Fault fault;
    fault.kind = why;
    fault.address = at;
    fault.bytes = bytes;
    fault.store = is_store(kind);
    stop(self, fault, site);
  };
  if ((reinterpret_cast<std::uintptr_t>(at) & (bytes - 1)) != 0) refuse(Fault::Kind::kMisaligned);
  const Allocation* const allocation = memory_.find(at, bytes);
  if (allocation == nullptr) refuse(Fault::Kind::kUnowned);
  if (allocation->shared_with_host && scope != Scope::kThread && scope != Scope::kSystem) {
    refuse(Fault::Kind::kHostScope);
  }
  if (exploration_ != nullptr) stand_before_access(self, kind, *allocation, at, bytes);
  if (injection_.kind == Injection::Kind::kDies && injection_.rank == self.id.rank &&
      ++injection_count_ == injection_.after) {
    dying_ = self.id.rank;
    switch_out(self);  // for good
  }

  const Access access{self.id, scope, const_cast<void*>(at), bytes, site};
  if (!is_store(kind)) {
    if (++fruitless_ > options_.fruitless_accesses) refuse(Fault::Kind::kLivelock);
    if (!chains_.empty()) see_message(self, at);
    switch (kind) {
      case AccessKind::kLoadInput:
        model_->load_input(access, value);
        break;
      case AccessKind::kLoadPacket:
        model_->load_packet(access, value);
        break;
      case AccessKind::kAcquire:
        model_->acquire(access, value);
        break;
      case AccessKind::kLoadRelaxed:
        model_->load_relaxed(access, value);
        break;
      case AccessKind::kLoadAbort:
        model_->load_relaxed(access, value);
        // Set, it ends the wait without what was waited for: the next one is another, though it may
        // look alike.
        if (*static_cast<const std::uint32_t*>(value) != 0) {
          self.waiting = false;
          model_->wait_expired(self.id.rank);
        }
        break;
      default:
        model_->load(access, value);
        break;
    }
    return check_model(self);
  }

  std::array<std::uint32_t, 4> damaged;
  if (!memory_.may_store(self.id.rank, at, bytes)) refuse(Fault::Kind::kOutsideRanges);
  if (allocation->owner >= 0 && allocation->owner != self.id.rank) {
    const DeviceMemory::Foreign foreign = memory_.foreign_store(self.id.rank, at, bytes);
    if (foreign == DeviceMemory::Foreign::kRefused) refuse(Fault::Kind::kOutsideRanges);
    count_store(self, *allocation, kind, bytes, foreign == DeviceMemory::Foreign::kDoneWord);
    // A done word of this exchange may be seen in it, but nobody needs it before the next but one.
    if (counts_hops_ && foreign != DeviceMemory::Foreign::kDoneWord) {
      chains_[reinterpret_cast<std::uintptr_t>(at) >> 4] = self.hops + 1;
    }
    if (injection_.kind == Injection::Kind::kCorrupts && injection_.rank == self.id.rank) {
      std::memcpy(damaged.data(), value, bytes);
      if (corrupt(kind, damaged.data())) value = damaged.data();
    }
  } else if (kind == AccessKind::kRelease && self.hops != 0) {
    // A gate between blocks of the rank: no message, but it passes on what its writer has seen.
    chains_[reinterpret_cast<std::uintptr_t>(at) >> 4] = self.hops;
  }
  progress();
  switch (kind) {
    case AccessKind::kStorePacket:
      model_->store_packet(access, value);
      break;
    case AccessKind::kRelease:
      model_->release(access, value);
      break;
    case AccessKind::kStoreFlag:
      model_->store_flag(access, value);
      break;
    case AccessKind::kStoreRelaxed:
      model_->store_relaxed(access, value);
      break;
    case AccessKind::kClaim:
      *static_cast<std::uint32_t*>(value) = model_->claim(access) ? 1 : 0;
      break;
    case AccessKind::kTake:
      *static_cast<std::uint32_t*>(value) = model_->take(access);
      break;
    default:
      model_->store(access, value);
      break;
  }
  check_model(self);
  note_stored(at, bytes);
  if (kind == AccessKind::kClaim) {
    // An abort word, perhaps: every wait of the rank looks at it beside its own word.
    newest_abort_[self.id.rank] = stores_;
    for_each_poller([&](Thread& thread) {
      if (thread.id.rank == self.id.rank) wake(thread);
    });
  }
}

// Where a lane of an exhaustive exploration stops, and what it does when its warp is chosen.
void Scheduler::stand_before_access(Thread& self, AccessKind kind, const Allocation& allocation,
                                    const void* at, std::uint32_t bytes) {
  // No kernel writes an input while this one runs, and an abort word is written when a wait
  // expires: here none does. So it does not matter when they are read.
  if (kind == AccessKind::kLoadInput || kind == AccessKind::kLoadAbort) return;
  self.at_access = true;
  switch_out(self);
  exploration_->accessed(self.warp->unit, cell_of(allocation, at), is_store(kind),
                         ((1u << bytes) - 1) << byte_of(allocation, at));
}

// One decision between warps, or what needs none. False if no thread can run.
bool Scheduler::explore() {
  if (!starting_.empty() && start_block()) return true;
  if (runnable_.empty()) return streams_dirty_;
  candidates_.clear();
  for (Warp* const warp : runnable_) {
    for (std::uint32_t lanes = warp->runnable; lanes != 0; lanes &= lanes - 1) {
      Thread& thread = warp->threads[static_cast<std::size_t>(std::countr_zero(lanes))];
      if (thread.at_access) continue;
      // Up to its next access a thread does nothing that another warp could see.
      switch_to(thread);
      return true;
    }
    candidates_.push_back(warp->unit);
  }
  std::ranges::sort(candidates_);
  const std::uint32_t unit = exploration_->decide(candidates_);
  if (unit == Exploration::kNone) {
    fault_.kind = Fault::Kind::kRedundant;
    return true;
  }
  Warp& warp = **std::ranges::find(runnable_, unit, [](const Warp* each) { return each->unit; });
  for (std::uint32_t lanes = warp.runnable; lanes != 0 && fault_.kind == Fault::Kind::kNone;
       lanes &= lanes - 1) {
    Thread& thread = warp.threads[static_cast<std::size_t>(std::countr_zero(lanes))];
    if (thread.state != ThreadState::kRunnable || !thread.at_access) continue;
    thread.at_access = false;
    switch_to(thread);
  }
  return true;
}

void Scheduler::count_store(const Thread& self, const Allocation& allocation, AccessKind kind,
                            std::uint32_t bytes, bool done_word) {
  Traffic& traffic = ledger_[{self.id.rank, allocation.owner}];
  ++traffic.messages;
  traffic.bytes += bytes;
  traffic.packets += kind == AccessKind::kStorePacket ? 1 : 0;
  const bool release = kind == AccessKind::kRelease || kind == AccessKind::kStoreFlag;
  traffic.flags += release && !done_word ? 1 : 0;
  traffic.done += release && done_word ? 1 : 0;
}

void Scheduler::see_message(Thread& self, const void* at) {
  const auto message = chains_.find(reinterpret_cast<std::uintptr_t>(at) >> 4);
  if (message == chains_.end()) return;
  self.hops = std::max(self.hops, message->second);
  longest_chain_ = std::max(longest_chain_, self.hops);
}

void Scheduler::clear_ledger() {
  ledger_.clear();
  chains_.clear();
  longest_chain_ = 0;
  counts_hops_ = true;
  for (const auto& stream : streams_) stream->hops = 0;
}

void Scheduler::stop_counting_hops() {
  counts_hops_ = false;
  chains_.clear();
}

void Scheduler::inject(const Injection& injection) {
  injection_ = injection;
  injection_count_ = 0;
  injected_ = false;
}

// True if the message is the one to be damaged; `value` is then a damaged copy of it.
bool Scheduler::corrupt(AccessKind kind, void* value) {
  const bool flag = kind == AccessKind::kRelease || kind == AccessKind::kStoreFlag;
  if (kind != AccessKind::kStorePacket && !flag) return false;
  if (++injection_count_ != injection_.after) return false;
  static_cast<std::uint32_t*>(value)[kind == AccessKind::kStorePacket ? 3 : 0] ^= 1u << 30;
  injection_ = {};
  injected_ = true;
  return true;
}

std::uint64_t Scheduler::newest_abort(const Thread& thread) const {
  const auto found = newest_abort_.find(thread.id.rank);
  return found == newest_abort_.end() ? 0 : found->second;
}

void Scheduler::poll_missed(Thread& self, const Wait& wait) {
  if (exploration_ != nullptr) {
    const Allocation* const allocation = memory_.find(wait.at, 4);
    if (allocation != nullptr) {
      exploration_->poll_missed(self.warp->unit, cell_of(*allocation, wait.at),
                                byte_of(*allocation, wait.at));
    }
  }
  // Time does not pass in an exhaustive exploration, so device code need not read the clock.
  const bool fresh = exploration_ == nullptr && (!self.waiting || !self.wait.same_wait(wait));
  self.wait = wait;
  // What it saw was not the newest: nobody would wake it for that.
  const bool stale = model_->took_stale(self.id);
  const Allocation* const awaited = memory_.find(wait.at, 4);
  const std::size_t bucket = awaited == nullptr ? 0 : bucket_of(*awaited, wait.at);
  if (fresh) {
    self.waiting = true;
    self.wait_start_ns = now_ns_;
    self.wait_doublings = 0;
    // Goes on at once: device code reads its clock after the first poll, and its wait ends with
    // that time as the start.
    switch_out(self);
  } else if (stale || std::max(newest_store_[bucket], newest_change_) > self.look ||
             newest_abort(self) > self.look) {
    // The word may have changed after this thread read it: a wait for several words reads others in
    // between.
    switch_out(self);
  } else {
    const std::uint64_t bound = self.warp->block->run->timeout_ns;
    self.wake_ns = bound != 0 ? later(self.wait_start_ns, bound)
                              : later(now_ns_, kFirstNapNs << std::min(self.wait_doublings, 50u));
    sleep(self, bucket);
    if (now_ns_ >= self.wake_ns) {
      model_->wait_expired(self.id.rank);
      if (bound == 0) ++self.wait_doublings;
      // If device code goes on waiting, its idea of the start is a later one.
      if (bound != 0) self.waiting = false;
    }
  }
  self.look = stores_;
}

void Scheduler::sleep(Thread& self, std::size_t bucket) {
  self.poll_bucket = bucket;
  Thread*& head = pollers_[bucket];
  self.previous_poller = nullptr;
  self.next_poller = head;
  if (head != nullptr) head->previous_poller = &self;
  head = &self;
  ++pollers_count_;
  make_unrunnable(self, ThreadState::kPolling);
  switch_out(self);
}

void Scheduler::wake(Thread& thread) {
  if (thread.next_poller != nullptr) thread.next_poller->previous_poller = thread.previous_poller;
  if (thread.previous_poller != nullptr) {
    thread.previous_poller->next_poller = thread.next_poller;
  } else {
    pollers_[thread.poll_bucket] = thread.next_poller;
  }
  thread.next_poller = nullptr;
  thread.previous_poller = nullptr;
  --pollers_count_;
  make_runnable(thread);
}

void Scheduler::wake_pollers(const void* at, std::size_t bucket) {
  for (Thread* thread = pollers_[bucket]; thread != nullptr;) {
    Thread* const next = thread->next_poller;
    if (same_unit(thread->wait.at, at)) wake(*thread);
    thread = next;
  }
}

// `visit` may wake the thread.
template <typename Visitor>
void Scheduler::for_each_poller(const Visitor& visit) {
  if (pollers_count_ == 0) return;
  for (Thread* head : pollers_) {
    for (Thread* thread = head; thread != nullptr;) {
      Thread* const next = thread->next_poller;
      visit(*thread);
      thread = next;
    }
  }
}

void Scheduler::memory_changed() {
  // Anything may have changed: no thread may sleep on what it read before.
  newest_change_ = ++stores_;
  for_each_poller([this](Thread& thread) { wake(thread); });
}

bool Scheduler::pass_time() {
  if (options_.stop_on_stall) return false;
  std::uint64_t nearest = kNever;
  for_each_poller([&](Thread& thread) { nearest = std::min(nearest, thread.wake_ns); });
  if (nearest == kNever) return false;
  now_ns_ = std::max(now_ns_, nearest);
  for_each_poller([&](Thread& thread) {
    if (thread.wake_ns <= now_ns_) wake(thread);
  });
  return true;
}

void Scheduler::fence_flags(Thread& self) {
  preempt(self);
  model_->flags_fenced(self.id);
}

std::uint64_t Scheduler::clock_ns(Thread& self) {
  // A loop that only watches the clock would never end: time passes only when nobody can run.
  if (++fruitless_ > options_.fruitless_accesses) {
    Fault fault;
    fault.kind = Fault::Kind::kLivelock;
    stop(self, fault);
  }
  return now_ns_;
}

std::uint32_t Scheduler::add_shared(Thread& self, std::uint32_t* counter, std::uint32_t amount,
                                    Site site) {
  preempt(self);
  if (!is_shared(*self.warp->block, counter, sizeof *counter)) {
    Fault fault;
    fault.kind = Fault::Kind::kSharedAddress;
    fault.address = counter;
    stop(self, fault, site);
  }
  model_->add_shared({self.id, Scope::kGpu, counter, sizeof *counter, site});
  check_model(self);
  progress();
  return std::exchange(*counter, *counter + amount);
}

void Scheduler::raw_access(Thread& self, const void* at, std::uint64_t bytes, bool store,
                           Site site) {
  if (bytes == 0) return;
  const Block& block = *self.warp->block;
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto stack = reinterpret_cast<std::uintptr_t>(self.stack.bottom);
  if (address >= stack && address - stack < StackPool::kBytes) return;
  if (is_shared(block, at, bytes)) {
    // A wait stores nothing: it has ended, and the next one is another, though it may look alike.
    if (store) self.waiting = false;
    for (std::uint64_t done = 0; done < bytes;) {
      // Neither larger than 16 bytes nor across such a boundary.
      const std::uint64_t size = std::min<std::uint64_t>(bytes - done, 16 - (address + done) % 16);
      const Access access{self.id, Scope::kThread, reinterpret_cast<void*>(address + done),
                          static_cast<std::uint32_t>(size), site};
      store ? model_->store_shared(access) : model_->load_shared(access);
      check_model(self);
      done += size;
    }
    return;
  }
  const std::vector<std::byte>& args = block.run->launch->args;
  const auto args_begin = reinterpret_cast<std::uintptr_t>(args.data());
  if (!store && address >= args_begin && address - args_begin < args.size()) return;
  Fault fault;
  // The bytes behind a block's shared memory keep a pattern that is checked when it ends.
  const bool near_shared =
      address >= reinterpret_cast<std::uintptr_t>(block.shared.data()) &&
      address < reinterpret_cast<std::uintptr_t>(block.shared.data()) + block.shared.size();
  fault.kind = near_shared ? Fault::Kind::kSharedOverrun : Fault::Kind::kRawAccess;
  fault.address = at;
  fault.bytes = bytes;
  fault.store = store;
  stop(self, fault, site);
}

void Scheduler::check_model(Thread& self) {
  if (!model_->violated()) return;
  Fault fault;
  fault.kind = Fault::Kind::kMemory;
  stop(self, fault);
}

// Memory that a wait may look at has changed.
void Scheduler::note_stored(const void* at, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(at);
  const Allocation* const allocation = memory_.find(at, bytes);
  if (allocation == nullptr) return;  // shared memory: nobody polls it
  for (std::size_t done = 0; done < bytes; done += 16) {
    const std::size_t bucket = bucket_of(*allocation, begin + done);
    newest_store_[bucket] = ++stores_;
    if (pollers_count_ != 0) wake_pollers(begin + done, bucket);
  }
}

}  // namespace afdep::emulator
