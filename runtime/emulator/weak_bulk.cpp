// WeakMemory: the async proxy. A bulk copy reads and writes on its own, from its start until the
// wait that ends with it; a proxy fence lies between it and ordinary stores before it.
// Source: PTX ISA, "Memory Consistency Model: Proxies" and "Causality Order"; Lustig, Cooksey,
// Giroux, "Mixed-Proxy Extensions for the NVIDIA PTX Memory Consistency Model" (ISCA 2022).
#include <algorithm>

#include "runtime/emulator/weak_memory.h"

namespace afdep::emulator {
namespace {

Agent reads_of(Agent thread) { return thread + kStoreReadPart; }
Agent writes_of(Agent thread) { return thread + kStoreWritePart; }
Agent loads_of(Agent thread, std::uint32_t barrier) {
  return agent_of(slot_of(thread), kBarrierPart + barrier);
}

}  // namespace

bool WeakMemory::ordered_for_proxy(const ThreadClock& self, MemorySpace space,
                                   const Stamp& write) const {
  if (fenced(self, space, write.agent, write.time)) return true;
  // What the same block's proxy wrote needs no fence.
  return !is_thread(write.agent) && slot_of(write.agent) == slot_of(self.agent) &&
         ordered(self, write.agent, write.time);
}

// `self` starts a copy that reads or writes [at, at + bytes) as `agent`.
void WeakMemory::async_access(const ThreadClock& self, Site site, MemorySpace space, const void* at,
                              std::uint32_t bytes, Agent agent, Time time, bool writes) {
  const char* const does = writes ? "bulk copy, writing" : "bulk copy, reading";
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const BlockRecord& block = blocks_[slot_of(self.agent)];
  const ThreadId thread{block.run->rank, block.run->launch, block.block,
                        static_cast<int>(part_of(self.agent)), self.agent};
  for (std::uint32_t done = 0; done < bytes && !violated(); done += kCellBytes) {
    const Access access{thread, Scope::kThread, reinterpret_cast<void*>(address + done), kCellBytes,
                        site};
    Cell& cell = shadow_.cell(access.address);
    const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
    for (Unit* unit = begin; unit != end && !violated(); ++unit) {
      if (!check_write(self, *unit, access, does)) break;
      if (!check_uses(self, *unit, access, does, !writes, false)) break;
      if (!ordered_for_proxy(self, space, unit->write)) {
        violate(Kind::kProxy, access, "store", unit->write, does);
        break;
      }
      if (writes) {
        unit->write = {agent, time, site};
        unit->use = {};
        unit->more.reset();
      } else {
        note_use(self, *unit, {agent, time, 0, site, false});
      }
    }
    if (cell.atomics != nullptr) check_atomics(self, cell, access, does, writes);
    if (writes && !cell.parts.empty()) {
      cell.whole = std::move(cell.parts.front());
      cell.parts.clear();
    }
  }
}

void WeakMemory::barrier_published(const ThreadId& thread, std::uint32_t barrier) {
  ThreadClock& self = clock_of(thread);
  std::vector<BarrierRecord>& barriers = blocks_[slot_of(thread.agent)].barriers;
  if (barriers.size() <= barrier) barriers.resize(barrier + 1);
  barriers[barrier].published_by = {self.agent, self.time, 0};
  ++self.time;
}

void WeakMemory::barrier_used(const Access& access, std::uint32_t barrier) {
  const ThreadClock& self = clock_of(access.thread);
  const Stamp& by = blocks_[slot_of(self.agent)].barriers[barrier].published_by;
  if (ordered(self, by.agent, by.time)) return;
  violate(Kind::kBarrier, access, "initialisation", by, "use of the barrier");
}

void WeakMemory::bulk_load(const ThreadId& thread, Site site, void* to, const void* from,
                           std::uint32_t bytes, std::uint32_t barrier, std::uint32_t phase) {
  ThreadClock& self = clock_of(thread);
  const Agent agent = loads_of(self.agent, barrier);
  async_access(self, site, MemorySpace::kGlobal, from, bytes, agent, phase, /*writes=*/false);
  async_access(self, site, MemorySpace::kShared, to, bytes, agent, phase, /*writes=*/true);
  barrier_arrived(thread, barrier);
}

// The arrival releases; whoever waits for the phase acquires.
void WeakMemory::barrier_arrived(const ThreadId& thread, std::uint32_t barrier) {
  ThreadClock& self = clock_of(thread);
  BarrierRecord& record = blocks_[slot_of(self.agent)].barriers[barrier];
  record.met.hb = clocks_.join(record.met.hb, published(self));
  Message arrival;
  arrival.writer.agent = self.agent;
  publish_seen(self, arrival);
  record.met.seen = clocks_.join(record.met.seen, seen_by(arrival));
  record.met.fenced = clocks_.join(record.met.fenced, self.fenced);
  record.met.staged = clocks_.join(record.met.staged, self.staged);
  ++self.time;
}

void WeakMemory::barrier_awaited(const ThreadId& thread, std::uint32_t barrier,
                                 std::uint32_t phases) {
  if (phases == 0) return;
  ThreadClock& self = clock_of(thread);
  const BarrierRecord& record = blocks_[slot_of(self.agent)].barriers[barrier];
  self.hb = clocks_.join(self.hb, record.met.hb);
  self.seen = clocks_.join(self.seen, record.met.seen);
  self.fenced = clocks_.join(self.fenced, record.met.fenced);
  self.staged = clocks_.join(self.staged, record.met.staged);
  const VectorClock::Entry ended{loads_of(self.agent, barrier), phases};
  self.hb = clocks_.with(self.hb, &ended, 1);
}

void WeakMemory::bulk_store(const ThreadId& thread, Site site, void* to, const void* from,
                            std::uint32_t bytes, std::uint32_t group) {
  const ThreadClock& self = clock_of(thread);
  async_access(self, site, MemorySpace::kShared, from, bytes, reads_of(self.agent), group,
               /*writes=*/false);
  async_access(self, site, MemorySpace::kGlobal, to, bytes, writes_of(self.agent), group,
               /*writes=*/true);
}

void WeakMemory::bulk_awaited(const ThreadId& thread, std::uint32_t group, bool only_read) {
  if (group == 0) return;
  ThreadClock& self = clock_of(thread);
  const std::array<VectorClock::Entry, 2> ended{
      {{reads_of(self.agent), group}, {writes_of(self.agent), group}}};
  self.hb = clocks_.with(self.hb, ended.data(), only_read ? 1 : 2);
}

void WeakMemory::bulk_fenced(const ThreadId& thread, MemorySpace space) {
  ThreadClock& self = clock_of(thread);
  ClockRef& covered = space == MemorySpace::kGlobal ? self.fenced : self.staged;
  covered = clocks_.join(covered, published(self));
  ++self.time;
}

}  // namespace afdep::emulator
