// Scheduler: where the threads of a warp or a block meet.
#include <algorithm>
#include <bit>
#include <cstdint>

#include "runtime/emulator/report.h"
#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

constexpr std::uint32_t bit(std::uint32_t lane) { return 1u << lane; }

// What each lane gets, from what all lanes gave.
void combine(Warp& warp) {
  const std::uint32_t lanes = warp.arrived;
  const auto for_each_lane = [lanes](const auto& visit) {
    for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
      visit(static_cast<std::uint32_t>(std::countr_zero(rest)));
    }
  };
  const auto give_all = [&](std::uint32_t value) {
    for_each_lane([&](std::uint32_t lane) { warp.results[lane] = value; });
  };
  switch (warp.kind) {
    case Collective::kSync:
      break;
    case Collective::kBallot: {
      std::uint32_t mask = 0;
      for_each_lane([&](std::uint32_t lane) { mask |= warp.values[lane] != 0 ? bit(lane) : 0; });
      give_all(mask);
      break;
    }
    case Collective::kReduceOr: {
      std::uint32_t all = 0;
      for_each_lane([&](std::uint32_t lane) { all |= warp.values[lane]; });
      give_all(all);
      break;
    }
    case Collective::kMatch:
      for_each_lane([&](std::uint32_t lane) {
        std::uint32_t mask = 0;
        for_each_lane([&](std::uint32_t other) {
          mask |= warp.values[other] == warp.values[lane] ? bit(other) : 0;
        });
        warp.results[lane] = mask;
      });
      break;
    case Collective::kShuffle:
      for_each_lane([&](std::uint32_t lane) {
        warp.results[lane] = warp.values[warp.operands[lane] % kLanes];
      });
      break;
    case Collective::kShuffleUp:
      for_each_lane([&](std::uint32_t lane) {
        const std::uint32_t delta = warp.operands[lane];
        warp.results[lane] = warp.values[delta > lane ? lane : lane - delta];
      });
      break;
  }
}

bool any_at_barrier(const Warp& warp) {
  for (const Thread& thread : warp.threads) {
    if (thread.state == ThreadState::kBarrier) return true;
  }
  return false;
}

Fault diverged(Fault::Kind kind, const char* operation) {
  Fault fault;
  fault.kind = kind;
  fault.operation = operation;
  return fault;
}

}  // namespace

std::uint32_t Scheduler::collective(Thread& self, Collective kind, std::uint32_t value,
                                    std::uint32_t operand, Site site) {
  preempt(self);
  Warp& warp = *self.warp;
  const bool other_kind = warp.arrived != 0 && warp.kind != kind;
  // All lanes take part, so a lane that ended or waits for the block can never come.
  if (other_kind || warp.live != warp.existing ||
      (warp.block->at_barrier != 0 && any_at_barrier(warp))) {
    stop(self, diverged(Fault::Kind::kDivergedWarp, name_of(kind)), site);
  }
  warp.kind = kind;
  warp.values[self.lane] = value;
  warp.operands[self.lane] = operand;
  warp.arrived |= bit(self.lane);
  if (warp.arrived != warp.existing) {
    make_unrunnable(self, ThreadState::kCollective);
    switch_out(self);
    return warp.results[self.lane];
  }
  combine(warp);
  warp.arrived = 0;
  progress();
  std::uint32_t hops = 0;
  for (const Thread& thread : warp.threads) hops = std::max(hops, thread.hops);
  for (Thread& thread : warp.threads) {
    thread.hops = hops;
    if (thread.state == ThreadState::kCollective) make_runnable(thread);
  }
  model_->warp_joined(warp.threads.front().id, kind == Collective::kSync);
  return warp.results[self.lane];
}

void Scheduler::sync_block(Thread& self, Site site) {
  preempt(self);
  Block& block = *self.warp->block;
  const int threads = static_cast<int>(block.threads.size());
  if (block.live != threads || self.warp->arrived != 0) {
    stop(self, diverged(Fault::Kind::kDivergedBlock, "sync_block"), site);
  }
  if (++block.at_barrier != threads) {
    make_unrunnable(self, ThreadState::kBarrier);
    switch_out(self);
    return;
  }
  block.at_barrier = 0;
  progress();
  std::uint32_t hops = 0;
  for (const Thread& thread : block.threads) hops = std::max(hops, thread.hops);
  for (Thread& thread : block.threads) thread.hops = hops;
  if (exploration_ != nullptr) {
    Clock all;
    for (const Warp& warp : block.warps) all.join(exploration_->clock(warp.unit));
    for (const Warp& warp : block.warps) exploration_->clock(warp.unit).join(all);
  }
  for (Thread& thread : block.threads) {
    if (thread.state == ThreadState::kBarrier) make_runnable(thread);
  }
  model_->block_joined(block.threads.front().id);
}

}  // namespace afdep::emulator
