// WeakMemory: who is ordered after whom, and ordinary accesses.
#include "runtime/emulator/weak_memory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/random.h"

namespace afdep::emulator {
namespace {

constexpr std::uint32_t kLanesOfWarp = 32;

Agent warp_of(Agent agent) { return agent & ~(kLanesOfWarp - 1); }

}  // namespace

std::unique_ptr<MemoryModel> make_weak_memory(Choices& choices, const DeviceMemory& memory) {
  return std::make_unique<WeakMemory>(choices, memory);
}

WeakMemory::WeakMemory(Choices& choices, const DeviceMemory& memory)
    : choices_(choices),
      memory_(memory),
      clocks_([this](std::uint32_t slot) { return blocks_[slot].order; }) {
  forget_everything();
}

WeakMemory::~WeakMemory() = default;

void WeakMemory::restart(std::uint64_t seed) {
  // Memory that is nearly sequential, and memory where everything is late.
  constexpr std::array<std::uint32_t, 5> kOdds{1000, 8, 3, 2, 1};
  constexpr std::array<std::uint32_t, 4> kSkips{1, 3, 12, 40};
  std::uint64_t state = seed ^ 0x5851f42d4c957f2du;
  stale_odds_ = kOdds[split_mix(state) % kOdds.size()];
  skips_ = kSkips[split_mix(state) % kSkips.size()];
}

// Everything that ran is ordered before everything that will.
void WeakMemory::forget_everything() {
  shadow_.clear();
  clocks_.forget_joins();
  blocks_.clear();
  blocks_.emplace_back();
  runs_.clear();
  streams_.clear();
  events_.clear();
  host_orders_.clear();
  gave_up_.clear();
  violation_ = {};
}

// ---- who is ordered after whom ------------------------------------------------------------------

bool WeakMemory::ordered(const ThreadClock& self, Agent agent, Time time) const {
  if (time == 0 || agent == self.agent) return true;
  if (slot_of(agent) == slot_of(self.agent) && is_thread(agent)) {
    if (time <= self.block_time) return true;
    if (warp_of(agent) == warp_of(self.agent) && time <= self.warp_time) return true;
  }
  return self.hb.covers(agent, time, order_of(agent));
}

bool WeakMemory::ordered(const ThreadClock& self, const Uses& uses) const {
  if (uses.lanes == 0) return ordered(self, uses.first, uses.time);
  if (slot_of(uses.first) == slot_of(self.agent)) {
    if (uses.time <= self.block_time) return true;
    if (uses.first == warp_of(self.agent) && uses.time <= self.warp_time) return true;
  }
  for (std::uint32_t lanes = uses.lanes; lanes != 0; lanes &= lanes - 1) {
    const Agent agent = uses.first + static_cast<std::uint32_t>(std::countr_zero(lanes));
    if (!ordered(self, agent, uses.time)) return false;
  }
  return true;
}

bool WeakMemory::observed(const ThreadClock& self, Agent agent, Time time) const {
  if (ordered(self, agent, time)) return true;
  if (warp_of(agent) == warp_of(self.agent) && time <= self.seen_warp_time) return true;
  return self.seen.covers(agent, time, order_of(agent));
}

bool WeakMemory::fenced(const ThreadClock& self, MemorySpace space, Agent agent, Time time) const {
  const ClockRef& covered = space == MemorySpace::kGlobal ? self.fenced : self.staged;
  return time == 0 || covered.covers(agent, time, order_of(agent));
}

void WeakMemory::learn(Met& known, const Met& other) {
  known.hb = clocks_.join(known.hb, other.hb);
  known.seen = clocks_.join(known.seen, other.seen);
}

ClockRef WeakMemory::published(const ThreadClock& self) {
  const std::uint32_t slot = slot_of(self.agent);
  const std::uint32_t part = part_of(self.agent);
  const std::array<VectorClock::Entry, 3> own{{
      {self.agent, self.time},
      {agent_of(slot, kWarpPart + part / kLanesOfWarp), self.warp_time},
      {agent_of(slot, kBlockPart), self.block_time},
  }};
  return clocks_.with(self.hb, own.data(), own.size());
}

void WeakMemory::publish_seen(ThreadClock& self, Message& message) {
  message.seen = clocks_.join(self.hb, self.seen);
  message.seen_warp_time = self.seen_warp_time;
  message.block_time = self.block_time;
  // Of its own acts only loads of atomics are of interest to whoever observes this.
  if (self.seen_time > self.seen_warp_time) message.seen_time = self.time++;
  message.seen_whole = message.seen_time == 0 && message.seen_warp_time == 0;
}

const ClockRef& WeakMemory::seen_by(Message& message) {
  if (message.seen_whole) return message.seen;
  message.seen_whole = true;
  const Agent writer = message.writer.agent;
  const std::uint32_t slot = slot_of(writer);
  std::array<VectorClock::Entry, 3> own{};
  std::size_t count = 0;
  if (message.seen_time != 0) own[count++] = {writer, message.seen_time};
  own[count++] = {agent_of(slot, kWarpPart + part_of(writer) / kLanesOfWarp),
                  message.seen_warp_time};
  own[count++] = {agent_of(slot, kBlockPart), message.block_time};
  message.seen = clocks_.with(message.seen, own.data(), count);
  return message.seen;
}

void WeakMemory::warp_joined(const ThreadId& first, bool orders_memory) {
  std::vector<ThreadClock>& threads = blocks_[slot_of(first.agent)].threads;
  const std::size_t begin = part_of(first.agent);
  const std::size_t end = std::min<std::size_t>(begin + kLanesOfWarp, threads.size());
  Time newest = 0;
  Met met{threads[begin].hb, threads[begin].seen, threads[begin].fenced, threads[begin].staged};
  for (std::size_t i = begin; i < end; ++i) {
    const ThreadClock& lane = threads[i];
    newest = std::max(newest, lane.time);
    met.seen = clocks_.join(met.seen, lane.seen);
    if (orders_memory) {
      met.hb = clocks_.join(met.hb, lane.hb);
      met.fenced = clocks_.join(met.fenced, lane.fenced);
      met.staged = clocks_.join(met.staged, lane.staged);
    } else {
      // Lanes know that the others came, not what they wrote.
      met.seen = clocks_.join(met.seen, lane.hb);
    }
  }
  for (std::size_t i = begin; i < end; ++i) {
    ThreadClock& lane = threads[i];
    lane.time = newest + 1;
    lane.seen_warp_time = newest;
    lane.seen = met.seen;
    if (!orders_memory) continue;
    lane.warp_time = newest;
    lane.hb = met.hb;
    lane.fenced = met.fenced;
    lane.staged = met.staged;
  }
}

void WeakMemory::block_joined(const ThreadId& first) {
  std::vector<ThreadClock>& threads = blocks_[slot_of(first.agent)].threads;
  Time newest = 0;
  Met met;
  for (const ThreadClock& thread : threads) {
    newest = std::max(newest, thread.time);
    met.hb = clocks_.join(met.hb, thread.hb);
    met.seen = clocks_.join(met.seen, thread.seen);
    met.fenced = clocks_.join(met.fenced, thread.fenced);
    met.staged = clocks_.join(met.staged, thread.staged);
  }
  for (ThreadClock& thread : threads) {
    thread.time = newest + 1;
    thread.block_time = thread.warp_time = thread.seen_warp_time = newest;
    thread.hb = met.hb;
    thread.seen = met.seen;
    thread.fenced = met.fenced;
    thread.staged = met.staged;
  }
}

// ---- kernels, streams and the host --------------------------------------------------------------

StreamRecord& WeakMemory::stream(std::uint64_t number) {
  std::unique_ptr<StreamRecord>& record = streams_[number];
  if (record == nullptr) {
    record = std::make_unique<StreamRecord>();
    record->index = static_cast<std::uint32_t>(streams_.size() - 1);
  }
  return *record;
}

void WeakMemory::kernel_started(const KernelStart& start) {
  StreamRecord& on = stream(start.stream);
  if (start.host_order > 0 && start.host_order <= host_orders_.size()) {
    learn(on.order, host_orders_[start.host_order - 1]);
  }
  on.started.push_back(start.launch);
  RunRecord& run = runs_[start.launch];
  run.rank = start.rank;
  run.launch = start.launch;
  run.stream = &on;
  run.symbol = start.symbol;
  run.start = on.order;
}

void WeakMemory::generation_known(std::uint64_t launch, std::uint32_t generation) {
  const auto run = runs_.find(launch);
  if (run != runs_.end()) run->second.generation = generation;
}

void WeakMemory::previous_kernel_awaited(const ThreadId& thread) {
  ThreadClock& self = clock_of(thread);
  // A kernel's end flushes every proxy.
  const Met& before = blocks_[slot_of(thread.agent)].run->stream->order;
  self.hb = clocks_.join(self.hb, before.hb);
  self.seen = clocks_.join(self.seen, before.seen);
  self.fenced = clocks_.join(self.fenced, before.hb);
}

void WeakMemory::kernel_ended(int /*rank*/, std::uint64_t launch) {
  const auto found = runs_.find(launch);
  if (found == runs_.end()) return;
  found->second.ended = true;
  StreamRecord& on = *found->second.stream;
  // In order: a kernel that ended before the one before it is not yet ordered before the next.
  while (!on.started.empty()) {
    const RunRecord& run = runs_[on.started.front()];
    if (!run.ended) break;
    learn(on.order, run.end);
    on.order.hb = clocks_.with(on.order.hb, {on.index, static_cast<std::uint32_t>(run.launch)});
    on.started.pop_front();
  }
}

std::uint32_t WeakMemory::block_started(const BlockStart& start) {
  RunRecord& run = runs_[start.launch];
  if (blocks_.size() == kMaxSlots) violation_.kind = Kind::kSlots;
  const auto slot = static_cast<std::uint32_t>(blocks_.size() % kMaxSlots);
  BlockRecord& block = blocks_.emplace_back();
  block.run = &run;
  block.order = {run.stream->index, static_cast<std::uint32_t>(run.launch)};
  block.block = start.block;
  block.shared = start.shared;
  block.shared_bytes = start.shared_bytes;
  block.threads.resize(static_cast<std::size_t>(start.threads));
  block.ended.resize(static_cast<std::size_t>(start.threads));
  for (std::size_t i = 0; i < block.threads.size(); ++i) {
    ThreadClock& thread = block.threads[i];
    thread.agent = agent_of(slot, static_cast<std::uint32_t>(i));
    thread.hb = thread.fenced = run.start.hb;
    thread.seen = run.start.seen;
  }
  shadow_.forget(start.shared, start.shared_bytes);
  return agent_of(slot, 0);
}

void WeakMemory::thread_ended(const ThreadId& thread) {
  BlockRecord& block = blocks_[slot_of(thread.agent)];
  ThreadClock& self = clock_of(thread);
  self.ended = true;
  block.ended[part_of(thread.agent)] = true;
  learn(block.run->end, {self.hb, self.seen, {}, {}});
  if (!self.doubts.empty()) report_doubts(self);
}

void WeakMemory::block_ended(const ThreadId& first) {
  BlockRecord& block = blocks_[slot_of(first.agent)];
  shadow_.forget(block.shared, block.shared_bytes);
  block.threads = {};
  block.barriers = {};
}

void WeakMemory::event_recorded(const void* event, std::uint64_t number) {
  events_[event] = stream(number).order;
}

void WeakMemory::event_awaited(const void* event, std::uint64_t number) {
  StreamRecord& on = stream(number);
  const auto found = events_.find(event);
  if (found != events_.end()) learn(on.order, found->second);
}

void WeakMemory::copied(std::uint64_t /*stream*/, void* to, const void* /*from*/,
                        std::size_t bytes) {
  shadow_.forget(to, bytes);
}

void WeakMemory::host_synchronized(std::uint64_t number) {
  Met known = stream(number).order;
  if (!host_orders_.empty()) learn(known, host_orders_.back());
  host_orders_.push_back(std::move(known));
}

bool WeakMemory::took_stale(const ThreadId& thread) {
  return std::exchange(clock_of(thread).stale, false);
}

// ---- ordinary accesses --------------------------------------------------------------------------

void WeakMemory::violate(Kind kind, const Access& access, const char* first_does,
                         const Stamp& first, const char* second_does) {
  if (violated()) return;
  if (kind == Kind::kRace) {
    // After a wait gave up, blocks of a kernel may have seen different tables, and place rows
    // accordingly: what they write is not defined then.
    const RunRecord* const a = blocks_[slot_of(first.agent)].run;
    const RunRecord* const b = blocks_[slot_of(access.thread.agent)].run;
    if (a != nullptr && a == b && gave_up_.contains(a->rank)) return;
  }
  violation_.kind = kind;
  violation_.first_does = first_does;
  violation_.second_does = second_does;
  violation_.first = first;
  violation_.second = {access.thread.agent, clock_of(access.thread).time, access.site};
  violation_.bytes = access.bytes;
  violation_.address = access.address;
}

bool WeakMemory::check_write(const ThreadClock& self, const Unit& unit, const Access& access,
                             const char* does) {
  if (ordered(self, unit.write.agent, unit.write.time)) return true;
  violate(Kind::kRace, access, "store", unit.write, does);
  return false;
}

bool WeakMemory::check_uses(const ThreadClock& self, const Unit& unit, const Access& access,
                            const char* does, bool only_adds, bool only_reads) {
  const auto good = [&](const Uses& uses) {
    if (uses.time == 0 || (only_adds && !uses.adds) || (only_reads && uses.adds)) return true;
    if (ordered(self, uses)) return true;
    Stamp first{uses.first, uses.time, uses.site};
    for (std::uint32_t lanes = uses.lanes; lanes != 0; lanes &= lanes - 1) {
      first.agent = uses.first + static_cast<std::uint32_t>(std::countr_zero(lanes));
      if (!ordered(self, first.agent, first.time)) break;
    }
    violate(Kind::kRace, access, uses.adds ? "addition" : "load", first, does);
    return false;
  };
  if (!good(unit.use)) return false;
  return unit.more == nullptr || std::ranges::all_of(*unit.more, good);
}

void WeakMemory::note_use(const ThreadClock& self, Unit& unit, const Uses& use) {
  const auto same = [&](const Uses& known) {
    return known.time == use.time && known.first == use.first && known.adds == use.adds &&
           (known.lanes == 0) == (use.lanes == 0);
  };
  if (unit.use.time == 0) {
    unit.use = use;
    return;
  }
  if (same(unit.use)) {
    unit.use.lanes |= use.lanes;
    return;
  }
  if (unit.more == nullptr) {
    // What comes before this use comes before whatever comes after it.
    if (unit.use.adds == use.adds && ordered(self, unit.use)) {
      unit.use = use;
      return;
    }
    unit.more = std::make_unique<std::vector<Uses>>();
  }
  for (Uses& known : *unit.more) {
    if (!same(known)) continue;
    known.lanes |= use.lanes;
    return;
  }
  std::erase_if(*unit.more,
                [&](const Uses& known) { return known.adds == use.adds && ordered(self, known); });
  unit.more->push_back(use);
}

void WeakMemory::read_unit(const ThreadClock& self, Unit& unit, const Access& access, bool adds) {
  const char* const does = adds ? "addition" : "load";
  if (!check_write(self, unit, access, does)) return;
  if (!check_uses(self, unit, access, does, !adds, adds)) return;
  const std::uint32_t lane = self.agent % kLanesOfWarp;
  note_use(self, unit, {warp_of(self.agent), self.time, 1u << lane, access.site, adds});
}

void WeakMemory::write_unit(const ThreadClock& self, Unit& unit, const Access& access) {
  if (!check_write(self, unit, access, "store")) return;
  if (!check_uses(self, unit, access, "store", false, false)) return;
  unit.write = {self.agent, self.time, access.site};
  unit.use = {};
  unit.more.reset();
}

void WeakMemory::load(const Access& access, void* value) {
  load_shared(access);
  std::memcpy(value, access.address, access.bytes);
}

void WeakMemory::store(const Access& access, const void* value) {
  store_shared(access);
  std::memcpy(access.address, value, access.bytes);
}

void WeakMemory::load_shared(const Access& access) {
  const ThreadClock& self = clock_of(access.thread);
  Cell& cell = shadow_.cell(access.address);
  const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) read_unit(self, *unit, access, false);
  if (cell.atomics != nullptr) check_atomics(self, cell, access, "load", false);
}

void WeakMemory::store_shared(const Access& access) {
  const ThreadClock& self = clock_of(access.thread);
  Cell& cell = shadow_.cell(access.address);
  const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) write_unit(self, *unit, access);
  if (cell.atomics != nullptr) check_atomics(self, cell, access, "store", true);
  // One store is one unit again.
  if (access.bytes == kCellBytes && !cell.parts.empty()) {
    cell.whole = std::move(cell.parts.front());
    cell.parts.clear();
  }
}

void WeakMemory::add_shared(const Access& access) {
  const ThreadClock& self = clock_of(access.thread);
  const auto [begin, end] =
      Shadow::units(shadow_.cell(access.address), access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) read_unit(self, *unit, access, true);
}

}  // namespace afdep::emulator
