#include "runtime/emulator/vector_clock.h"

#include <algorithm>
#include <memory>

namespace afdep::emulator {

bool VectorClock::covers(Agent agent, Time time, const LaunchOrder& order) const {
  if (covers(order)) return true;
  const std::uint32_t slot = slot_of(agent);
  const std::uint32_t part = part_of(agent);
  auto entry = std::ranges::lower_bound(entries_, agent_of(slot, 0), {}, &Entry::agent);
  if (part >= kStoreReadPart) {
    // The async proxy is behind nobody's barrier.
    entry = std::lower_bound(entry, entries_.end(), agent,
                             [](const Entry& e, Agent wanted) { return e.agent < wanted; });
    return entry != entries_.end() && entry->agent == agent && entry->time >= time;
  }
  const std::uint32_t warp = kWarpPart + part / 32;
  for (; entry != entries_.end() && slot_of(entry->agent) == slot; ++entry) {
    const std::uint32_t known = part_of(entry->agent);
    if ((known == part || known == warp || known == kBlockPart) && entry->time >= time) return true;
  }
  return false;
}

Clocks::Clocks(std::function<LaunchOrder(std::uint32_t slot)> order_of)
    : order_of_(std::move(order_of)), memos_(kMemos) {}

void Clocks::forget_joins() { memos_.assign(kMemos, Memo{}); }

ClockRef Clocks::join(const ClockRef& a, const ClockRef& b) {
  if (b.get() == nullptr || a == b) return a;
  if (a.get() == nullptr) return b;
  const auto key = reinterpret_cast<std::uintptr_t>(a.get()) / 16 * 31 +
                   reinterpret_cast<std::uintptr_t>(b.get()) / 16;
  Memo& memo = memos_[key * 0x9e3779b97f4a7c15u >> 54];
  static_assert(kMemos == 1u << 10);
  if (memo.a == a && memo.b == b) return memo.joined;
  ClockRef joined = merge(a, *b.get(), b);
  memo = {a, b, joined};
  return joined;
}

bool VectorClock::includes(const VectorClock& other) const {
  for (std::size_t i = 0; i < other.launches_.size(); ++i) {
    if (other.launches_[i] > (i < launches_.size() ? launches_[i] : 0)) return false;
  }
  if (other.entries_.size() > entries_.size()) return false;
  auto mine = entries_.begin();
  for (const Entry& entry : other.entries_) {
    while (mine != entries_.end() && mine->agent < entry.agent) ++mine;
    if (mine == entries_.end() || mine->agent != entry.agent || mine->time < entry.time) {
      return false;
    }
  }
  return true;
}

ClockRef Clocks::merge(const ClockRef& a_ref, const VectorClock& b, const ClockRef& b_ref) {
  const VectorClock& a = *a_ref.get();
  // Most joins teach nothing new.
  if (a.includes(b)) return a_ref;
  if (b_ref.get() != nullptr && b.includes(a)) return b_ref;
  auto made = std::make_unique<VectorClock>();
  made->launches_.resize(std::max(a.launches_.size(), b.launches_.size()));
  for (std::size_t i = 0; i < made->launches_.size(); ++i) {
    made->launches_[i] = std::max(i < a.launches_.size() ? a.launches_[i] : 0,
                                  i < b.launches_.size() ? b.launches_[i] : 0);
  }
  std::vector<VectorClock::Entry>& merged = made->entries_;
  merged.reserve(a.entries_.size() + b.entries_.size());
  std::uint32_t slot = kMaxSlots;
  bool ended = false;
  const auto add = [&](const VectorClock::Entry& entry) {
    if (slot_of(entry.agent) != slot) {
      slot = slot_of(entry.agent);
      ended = made->covers(order_of_(slot));
    }
    if (!ended) merged.push_back(entry);
  };
  auto x = a.entries_.begin();
  auto y = b.entries_.begin();
  while (x != a.entries_.end() || y != b.entries_.end()) {
    if (y == b.entries_.end() || (x != a.entries_.end() && x->agent < y->agent)) {
      add(*x++);
    } else if (x == a.entries_.end() || y->agent < x->agent) {
      add(*y++);
    } else {
      add({x->agent, std::max(x->time, y->time)});
      ++x;
      ++y;
    }
  }
  // What a knew of ended kernels may be all that is missing.
  if (made->launches_ == a.launches_ && merged == a.entries_) return a_ref;
  merged.shrink_to_fit();
  return ClockRef(made.release());
}

ClockRef Clocks::with(const ClockRef& clock, const VectorClock::Entry* entries, std::size_t count) {
  VectorClock own;
  own.entries_.assign(entries, entries + count);
  if (clock.get() == nullptr) return ClockRef(new VectorClock(own));
  return merge(clock, own, ClockRef());
}

ClockRef Clocks::with(const ClockRef& clock, const LaunchOrder& order) {
  if (clock.get() != nullptr && clock.get()->covers(order)) return clock;
  VectorClock own;
  own.launches_.resize(order.stream + 1);
  own.launches_[order.stream] = order.launch;
  if (clock.get() == nullptr) return ClockRef(new VectorClock(own));
  return merge(clock, own, ClockRef());
}

}  // namespace afdep::emulator
