// The search itself, on small programs whose schedules can be counted by hand.
#include "runtime/emulator/exhaustive.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace afdep::emulator {
namespace {

struct Step {
  std::uint64_t cell;
  bool store;
  std::uint32_t bytes = Exploration::kWhole;
  bool poll = false;  // a load that is repeated until somebody has stored
};
constexpr Step poll(std::uint64_t cell) { return {cell, false, Exploration::kWhole, true}; }
using Program = std::vector<std::vector<Step>>;  // by unit

// Runs every schedule that the search wants; returns the orders, as unit numbers, that ran to the
// end.
std::vector<std::string> explore(const Program& program, Exploration& exploration) {
  std::vector<std::string> orders;
  do {
    exploration.begin();
    std::vector<std::size_t> at(program.size(), 0);
    std::vector<bool> sleeps(program.size(), false);
    std::set<std::uint64_t> stored;
    std::string order;
    for (;;) {
      std::vector<std::uint32_t> candidates;
      for (std::uint32_t unit = 0; unit < program.size(); ++unit) {
        if (at[unit] == program[unit].size()) continue;
        if (sleeps[unit] && !stored.contains(program[unit][at[unit]].cell)) continue;
        candidates.push_back(unit);
      }
      if (candidates.empty()) break;
      const std::uint32_t unit = exploration.decide(candidates);
      if (unit == Exploration::kNone) break;
      const Step& step = program[unit][at[unit]];
      exploration.accessed(unit, step.cell, step.store, step.bytes);
      sleeps[unit] = step.poll && !stored.contains(step.cell);
      if (sleeps[unit]) {
        exploration.poll_missed(unit, step.cell);
        continue;  // a poll that misses is left out of the order
      }
      if (step.store) stored.insert(step.cell);
      ++at[unit];
      order += static_cast<char>('0' + unit);
    }
    if (!exploration.redundant()) orders.push_back(order);
  } while (exploration.next());
  return orders;
}

TEST(Exploration, StepsThatTouchNothingInCommonHaveOneOrder) {
  Exploration exploration(0);
  EXPECT_EQ(
      explore({{{1, true}, {1, true}}, {{2, true}, {2, true}}, {{3, false}}}, exploration).size(),
      1U);
}

TEST(Exploration, ReadsCommute) {
  Exploration exploration(0);
  EXPECT_EQ(explore({{{1, false}}, {{1, false}}, {{1, false}}}, exploration).size(), 1U);
}

TEST(Exploration, TwoStoresHaveTwoOrders) {
  Exploration exploration(0);
  const auto orders = explore({{{1, true}}, {{1, true}}}, exploration);
  EXPECT_EQ(std::set(orders.begin(), orders.end()), (std::set<std::string>{"01", "10"}));
}

TEST(Exploration, ThreeStoresHaveSixOrders) {
  Exploration exploration(0);
  const auto orders = explore({{{1, true}}, {{1, true}}, {{1, true}}}, exploration);
  EXPECT_EQ(orders.size(), 6U);
  EXPECT_EQ(std::set(orders.begin(), orders.end()).size(), 6U);
}

// Store buffering: x = 1; read y || y = 1; read x. Each pair of conflicting steps has two orders,
// and one of the four combinations is a cycle: three are left.
TEST(Exploration, StoreBufferingHasThreeOutcomes) {
  Exploration exploration(0);
  const auto orders = explore({{{1, true}, {2, false}}, {{2, true}, {1, false}}}, exploration);
  std::set<std::pair<bool, bool>> outcomes;
  for (const std::string& order : orders) {
    const auto first0 = order.find('0');
    const auto first1 = order.find('1');
    outcomes.emplace(order.rfind('0') > first1, order.rfind('1') > first0);
  }
  EXPECT_EQ(outcomes.size(), 3U);
  EXPECT_EQ(orders.size(), 3U);
}

TEST(Exploration, StoresOfOtherBytesOfACellHaveOneOrder) {
  Exploration exploration(0);
  EXPECT_EQ(explore({{{1, true, 0x000f}}, {{1, true, 0x00f0}}}, exploration).size(), 1U);
}

TEST(Exploration, AnAccessOfAWholeCellConflictsWithEachPart) {
  Exploration exploration(0);
  // The whole before both parts, between them (two ways), or behind both.
  EXPECT_EQ(explore({{{1, true, 0x000f}}, {{1, true, 0x00f0}}, {{1, false}}}, exploration).size(),
            4U);
}

TEST(Exploration, PollsThatMissAddNoOrder) {
  Exploration exploration(0);
  EXPECT_EQ(explore({{poll(1)}, {{2, true}, {1, true}}}, exploration),
            std::vector<std::string>{"110"});
}

// y = 1; await x || x = 1; read y: the missed poll must not order the store of y before the read.
TEST(Exploration, PollsThatMissOrderNothing) {
  Exploration exploration(0);
  std::set<bool> seen;
  for (const std::string& order :
       explore({{{2, true}, poll(1)}, {{1, true}, {2, false}}}, exploration)) {
    seen.insert(order.find('0') < order.rfind('1'));
  }
  EXPECT_EQ(seen, (std::set{false, true}));
}

// look x; await x || x = 1: the look misses or hits, though the poll behind it misses too.
TEST(Exploration, ALookBeforeAPollIsAStep) {
  Exploration exploration(0);
  std::set<bool> hits;
  for (const std::string& order : explore({{{1, false}, poll(1)}, {{1, true}}}, exploration)) {
    hits.insert(order.front() == '1');
  }
  EXPECT_EQ(hits, (std::set{false, true}));
}

TEST(Exploration, ValuesBranchUpToTheBound) {
  const auto count = [](std::uint32_t bound) {
    Exploration exploration(bound);
    int runs = 0;
    do {
      exploration.begin();
      const std::vector<std::uint32_t> only{0};
      exploration.decide(only);
      exploration.pick(2);
      exploration.pick(2);
      ++runs;
    } while (exploration.next());
    return runs;
  };
  EXPECT_EQ(count(0), 1);  // the newest value alone
  EXPECT_EQ(count(1), 3);  // one of the two loads is stale, or none
  EXPECT_EQ(count(2), 4);
}

TEST(Exploration, ReplaysOneSchedule) {
  Exploration exploration(0);
  const Program program{{{1, true}, {2, true}}, {{2, true}, {1, true}}};
  const auto all = explore(program, exploration);
  ASSERT_GT(all.size(), 1U);
  Exploration again(0);
  std::vector<std::uint32_t> choices;
  for (const char unit : all.back()) choices.push_back(static_cast<std::uint32_t>(unit - '0'));
  again.replay(choices);
  EXPECT_EQ(explore(program, again), std::vector<std::string>{all.back()});
}

}  // namespace
}  // namespace afdep::emulator
