#include "runtime/emulator/strategy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <limits>
#include <vector>

namespace afdep::emulator {
namespace {

constexpr std::uint32_t kForever = std::numeric_limits<std::uint32_t>::max();

int warp_index(const Warp& warp) { return static_cast<int>(&warp - warp.block->warps.data()); }

// Long runs find what only a delay shows, fine interleavings what only a race shows: a seed takes
// one of each.
class RandomStrategy : public Strategy {
 public:
  explicit RandomStrategy(Choices& choices) : Strategy(choices) {}

  void restart() override {
    constexpr std::array<std::uint32_t, 6> kSlices{1, 2, 4, 16, 64, 1024};
    constexpr std::array<std::uint32_t, 4> kStays{1, 2, 8, 64};
    constexpr std::array<std::uint32_t, 4> kStarts{2, 16, 256, 4096};
    mean_slice_ = kSlices[choices_.pick(kSlices.size())];
    stay_odds_ = kStays[choices_.pick(kStays.size())];
    start_odds_ = kStarts[choices_.pick(kStarts.size())];
  }

  Warp& next_warp(std::span<Warp* const> runnable, Warp* last) override {
    if (last != nullptr && stays()) return *last;
    return *runnable[choices_.pick(static_cast<std::uint32_t>(runnable.size()))];
  }

  std::uint32_t slice(const Warp& /*warp*/) override {
    return mean_slice_ == 1 ? 1 : 1 + choices_.pick(2 * mean_slice_ - 1);
  }

  bool starts_block() override { return choices_.one_in(start_odds_); }

 protected:
  bool stays() { return !choices_.one_in(stay_odds_); }

 private:
  std::uint32_t mean_slice_ = 1;  // accesses between two switches
  std::uint32_t stay_odds_ = 1;   // once in so many switches the next lane is of another warp
  std::uint32_t start_odds_ = 1;  // once in so many switches a block starts though others can run
};

// What shares a priority, or is late together.
enum class Grain : std::uint8_t { kRank, kBlock, kWarp };

// Source: Burckhardt et al., "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs"
// (2010): the runnable thread of the highest priority runs; at depth - 1 points, spread over the
// length of a run, the running one falls behind all others.
class PctStrategy final : public Strategy {
 public:
  PctStrategy(Choices& choices, int depth)
      : Strategy(choices), changes_(static_cast<std::uint32_t>(std::max(depth, 1)) - 1) {}

  void restart() override {
    // The length of a run is known from the run before.
    longest_ = std::max(longest_, points_);
    const std::uint64_t length = std::max<std::uint64_t>(longest_, kFirstLength);
    points_ = 0;
    epoch_ = 1 + choices_.pick(kForever - 1);
    grain_ = static_cast<Grain>(choices_.pick(3));
    change_at_.clear();
    for (std::uint32_t i = 0; i < changes_; ++i) {
      change_at_.push_back(
          choices_.pick(static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kForever - 1))));
    }
    std::ranges::sort(change_at_);
    next_change_ = 0;
    newcomers_ = true;
    lowered_.clear();
  }

  Warp& next_warp(std::span<Warp* const> runnable, Warp* last) override {
    if (next_change_ < change_at_.size() && points_ >= change_at_[next_change_]) {
      ++next_change_;
      if (last != nullptr) lowered_.push_back(key_of(*last));
      newcomers_ = true;
    }
    // It had the highest priority, and nobody has come since.
    if (last != nullptr && !newcomers_) return *last;
    newcomers_ = false;
    Warp* best = runnable.front();
    std::uint64_t highest = priority(*best);
    for (Warp* const warp : runnable.subspan(1)) {
      const std::uint64_t mine = priority(*warp);
      if (mine > highest) {
        highest = mine;
        best = warp;
      }
    }
    return *best;
  }

  std::uint32_t slice(const Warp& /*warp*/) override {
    if (next_change_ == change_at_.size()) return kForever;
    const std::uint64_t at = change_at_[next_change_];
    return at <= points_ ? 1 : static_cast<std::uint32_t>(at - points_);
  }

  void ran(std::uint32_t points) override { points_ += points; }

  bool overtakes(Warp& warp, const Warp* running) override {
    newcomers_ = true;
    return running != nullptr && priority(warp) > priority(*running);
  }

  bool starts_block() override { return true; }

 private:
  static constexpr std::uint64_t kFirstLength = 4'000;

  std::uint64_t key_of(const Warp& warp) const {
    const ThreadId& id = warp.threads.front().id;
    std::uint64_t key = static_cast<std::uint64_t>(id.rank) + 1;
    if (grain_ == Grain::kRank) return key;
    key = key << 40 ^ id.launch << 20 ^ static_cast<std::uint64_t>(id.block) << 6;
    if (grain_ == Grain::kBlock) return key;
    return key ^ static_cast<std::uint64_t>(warp_index(warp)) << 1 ^ 1;
  }

  // A hash of who it is, so that no table is kept; lower than any hash once it has fallen behind.
  std::uint64_t priority(const Warp& warp) const {
    const std::uint64_t key = key_of(warp);
    for (std::size_t i = lowered_.size(); i-- > 0;) {
      if (lowered_[i] == key) return lowered_.size() - i;
    }
    std::uint64_t state = key ^ static_cast<std::uint64_t>(epoch_) << 32;
    return split_mix(state) | std::uint64_t{1} << 32;
  }

  std::uint32_t changes_;
  std::uint32_t epoch_ = 1;
  Grain grain_ = Grain::kWarp;
  std::uint64_t points_ = 0;
  std::uint64_t longest_ = 0;
  std::vector<std::uint64_t> change_at_;  // ascending
  std::size_t next_change_ = 0;
  bool newcomers_ = true;               // some warp became runnable since the newest decision
  std::vector<std::uint64_t> lowered_;  // in the order in which they fell
};

// The victim stands still until all others wait; then it goes on for a while. So peers get as far
// ahead as the protocol lets them: with a mistake in it, as far as there are exchanges queued.
class LateStrategy final : public RandomStrategy {
 public:
  explicit LateStrategy(Choices& choices) : RandomStrategy(choices) {}

  void restart() override {
    RandomStrategy::restart();
    constexpr std::array<std::uint32_t, 4> kBursts{1, 16, 256, 4096};
    burst_ = kBursts[choices_.pick(kBursts.size())];
    grain_ = static_cast<Grain>(choices_.pick(3));
    victim_draw_ = choices_.pick(1u << 16);
    block_draw_ = choices_.pick(1u << 16);
    warp_draw_ = choices_.pick(1u << 16);
    left_ = 0;
  }

  Warp& next_warp(std::span<Warp* const> runnable, Warp* last) override {
    if (left_ > 0) return RandomStrategy::next_warp(runnable, last);
    if (last != nullptr && is_late(*last)) last = nullptr;
    if (last != nullptr && stays()) return *last;
    // Most are punctual: a few draws find one.
    for (int i = 0; i < kDraws; ++i) {
      Warp* const warp = runnable[choices_.pick(static_cast<std::uint32_t>(runnable.size()))];
      if (!is_late(*warp)) return *warp;
    }
    punctual_.clear();
    for (Warp* const warp : runnable) {
      if (!is_late(*warp)) punctual_.push_back(warp);
    }
    if (!punctual_.empty()) return RandomStrategy::next_warp(punctual_, nullptr);
    left_ = 1 + choices_.pick(2 * burst_);
    return RandomStrategy::next_warp(runnable, nullptr);
  }

  std::uint32_t slice(const Warp& warp) override {
    const std::uint32_t wanted = RandomStrategy::slice(warp);
    return left_ > 0 ? std::min(left_, wanted) : wanted;
  }

  void ran(std::uint32_t points) override { left_ -= std::min(left_, points); }

  bool overtakes(Warp& warp, const Warp* running) override {
    ranks_ = std::max(ranks_, static_cast<std::uint32_t>(warp.threads.front().id.rank) + 1);
    return running != nullptr && is_late(*running) && left_ == 0 && !is_late(warp);
  }

 private:
  bool is_late(const Warp& warp) const {
    const ThreadId& id = warp.threads.front().id;
    if (static_cast<std::uint32_t>(id.rank) != victim_draw_ % ranks_) return false;
    if (grain_ == Grain::kRank) return true;
    const auto blocks = static_cast<std::uint32_t>(warp.block->run->launch->grid);
    if (static_cast<std::uint32_t>(id.block) != block_draw_ % blocks) return false;
    if (grain_ == Grain::kBlock) return true;
    const auto warps = static_cast<std::uint32_t>(warp.block->warps.size());
    return static_cast<std::uint32_t>(warp_index(warp)) == warp_draw_ % warps;
  }

  static constexpr int kDraws = 4;

  std::uint32_t burst_ = 1;  // points that the victim passes, on average, when all others wait
  Grain grain_ = Grain::kRank;
  std::uint32_t victim_draw_ = 0;
  std::uint32_t block_draw_ = 0;
  std::uint32_t warp_draw_ = 0;
  std::uint32_t ranks_ = 1;  // seen so far
  std::uint32_t left_ = 0;   // points until the victim stands still again
  std::vector<Warp*> punctual_;
};

}  // namespace

std::string_view to_string(Explore explore) {
  switch (explore) {
    case Explore::kRandom:
      return "random";
    case Explore::kPct:
      return "pct";
    case Explore::kLate:
      return "late";
    case Explore::kExhaustive:
      return "exhaustive";
  }
  return "strategy";
}

Thread& Strategy::next_lane(Warp& warp) {
  const int from = static_cast<int>(choices_.pick(kLanes));
  const int lane = (std::countr_zero(std::rotr(warp.runnable, from)) + from) % kLanes;
  return warp.threads[static_cast<std::size_t>(lane)];
}

std::unique_ptr<Strategy> make_strategy(Explore explore, Choices& choices, int depth) {
  switch (explore) {
    case Explore::kPct:
      return std::make_unique<PctStrategy>(choices, depth);
    case Explore::kLate:
      return std::make_unique<LateStrategy>(choices);
    case Explore::kRandom:
    case Explore::kExhaustive:
      break;
  }
  return std::make_unique<RandomStrategy>(choices);
}

}  // namespace afdep::emulator
