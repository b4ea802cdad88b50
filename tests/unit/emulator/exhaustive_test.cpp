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
};
using Program = std::vector<std::vector<Step>>;  // by unit

// Runs every schedule that the search wants; returns the orders, as unit numbers, that ran to the
// end.
std::vector<std::string> explore(const Program& program, Exploration& exploration) {
  std::vector<std::string> orders;
  do {
    exploration.begin();
    std::vector<std::size_t> at(program.size(), 0);
    std::string order;
    for (;;) {
      std::vector<std::uint32_t> candidates;
      for (std::uint32_t unit = 0; unit < program.size(); ++unit) {
        if (at[unit] < program[unit].size()) candidates.push_back(unit);
      }
      if (candidates.empty()) break;
      const std::uint32_t unit = exploration.decide(candidates);
      if (unit == Exploration::kNone) break;
      const Step& step = program[unit][at[unit]++];
      exploration.accessed(unit, step.cell, step.store);
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
