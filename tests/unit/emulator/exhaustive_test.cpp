// The search itself, on small programs whose schedules can be counted by hand.
#include "runtime/emulator/exhaustive.h"

#include <gtest/gtest.h>

#include <algorithm>
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
// end, and their choices.
std::vector<std::string> explore(const Program& program, Exploration& exploration,
                                 std::vector<std::vector<std::uint32_t>>* choices = nullptr) {
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
    if (!exploration.redundant()) {
      orders.push_back(order);
      if (choices != nullptr) choices->push_back(exploration.choices());
    }
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

// Each bound runs exactly what it allows: 0 and 1 store x, then y; what the two orders of each pair
// can look like with so many preemptions.
TEST(Exploration, PreemptionsAreBounded) {
  const Program program{{{1, true}, {2, true}}, {{1, true}, {2, true}}};
  const auto orders = [&](std::uint32_t bound, bool& cut) {
    Exploration exploration(0, bound);
    const auto all = explore(program, exploration);
    cut = exploration.cut();
    return std::set(all.begin(), all.end());
  };
  bool cut = false;
  EXPECT_EQ(orders(0, cut), (std::set<std::string>{"0011", "1100"}));
  EXPECT_TRUE(cut);
  const std::set<std::string> one = orders(1, cut);
  EXPECT_TRUE(one.contains("0110"));
  EXPECT_TRUE(one.contains("1001"));
  EXPECT_FALSE(one.contains("0101"));  // two
  EXPECT_TRUE(cut);
  orders(4, cut);
  EXPECT_FALSE(cut);
}

// Only 0's second step and 1's first conflict. That 1 comes between 0's steps takes a preemption;
// that it comes before both takes none.
TEST(Exploration, WithoutPreemptionsTheOtherTakesTheWholeTurn) {
  Exploration exploration(0, 0);
  const auto orders = explore({{{1, true}, {2, true}}, {{2, false}, {3, true}}}, exploration);
  EXPECT_EQ(std::set(orders.begin(), orders.end()), (std::set<std::string>{"0011", "1100"}));
}

// What a schedule does, up to equivalence: the steps that ran, and the order of each two that
// conflict.
std::string class_of(const Program& program, const std::string& order) {
  std::string key = std::to_string(order.size()) + ":";
  std::vector<std::size_t> at(program.size(), 0);
  std::vector<std::pair<char, std::size_t>> steps;
  for (const char unit : order)
    steps.emplace_back(unit, at[static_cast<std::size_t>(unit - '0')]++);
  std::set<std::string> pairs;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& first = program[static_cast<std::size_t>(steps[i].first - '0')][steps[i].second];
    for (std::size_t j = i + 1; j < steps.size(); ++j) {
      const Step& second = program[static_cast<std::size_t>(steps[j].first - '0')][steps[j].second];
      if (steps[i].first == steps[j].first || first.cell != second.cell ||
          (first.bytes & second.bytes) == 0 || (!first.store && !second.store)) {
        continue;
      }
      pairs.insert(std::string{steps[i].first} + std::to_string(steps[i].second) + steps[j].first +
                   std::to_string(steps[j].second));
    }
  }
  for (const std::string& pair : pairs) key += pair + ' ';
  return key;
}

// Every schedule with so many preemptions, one by one.
struct Brute {
  const Program& program;
  std::set<std::string> classes;

  void go(std::vector<std::size_t> at, std::vector<bool> sleeps, std::set<std::uint64_t> stored,
          const std::string& order, std::uint32_t running, std::uint32_t left) {
    std::vector<std::uint32_t> candidates;
    for (std::uint32_t unit = 0; unit < program.size(); ++unit) {
      if (at[unit] == program[unit].size()) continue;
      if (sleeps[unit] && !stored.contains(program[unit][at[unit]].cell)) continue;
      candidates.push_back(unit);
    }
    if (candidates.empty()) classes.insert(class_of(program, order));
    const bool may_go_on = std::ranges::find(candidates, running) != candidates.end();
    for (const std::uint32_t unit : candidates) {
      const bool preempts = may_go_on && unit != running;
      if (preempts && left == 0) continue;
      auto next_at = at;
      auto next_sleeps = sleeps;
      auto next_stored = stored;
      std::string next_order = order;
      const Step& step = program[unit][at[unit]];
      next_sleeps[unit] = step.poll && !stored.contains(step.cell);
      if (!next_sleeps[unit]) {
        if (step.store) next_stored.insert(step.cell);
        ++next_at[unit];
        next_order += static_cast<char>('0' + unit);
      }
      go(next_at, next_sleeps, next_stored, next_order, unit, left - (preempts ? 1 : 0));
    }
  }
};

// Random programs of three units, with and without polls: no class of schedules is missed, with any
// bound on preemptions.
TEST(Exploration, FindsEveryClassThatBruteForceFinds) {
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % below;
  };
  for (int i = 0; i < 400; ++i) {
    Program program(3);
    for (auto& unit : program) {
      const std::uint32_t steps = 1 + draw(3);
      for (std::uint32_t step = 0; step < steps; ++step) {
        const std::uint64_t cell = 1 + draw(3);
        const std::uint32_t kind = draw(i % 2 == 0 ? 4 : 5);
        unit.push_back(kind == 4 ? poll(cell) : Step{cell, kind < 2});
      }
    }
    for (const std::uint32_t bound : {0u, 1u, 2u, Exploration::kUnbounded}) {
      Brute brute{program, {}};
      brute.go(std::vector<std::size_t>(3, 0), std::vector<bool>(3, false), {}, "", 99, bound);
      Exploration exploration(0, bound);
      std::set<std::string> found;
      for (const std::string& order : explore(program, exploration)) {
        found.insert(class_of(program, order));
      }
      EXPECT_TRUE(std::ranges::includes(found, brute.classes))
          << "program " << i << ", bound " << bound << ": " << found.size() << " of "
          << brute.classes.size();
    }
  }
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

// A token does not say which search found it: choices of a bounded one, and of one with older
// values, mean the same to a replay without bounds.
TEST(Exploration, ReplaysSchedulesOfBoundedSearches) {
  const Program program{
      {{1, true}, poll(2), {3, true}}, {{3, false}, {2, true}}, {{1, false}, {3, true}}};
  for (const std::uint32_t bound : {0u, 1u, 2u}) {
    Exploration exploration(0, bound);
    std::vector<std::vector<std::uint32_t>> choices;
    const auto all = explore(program, exploration, &choices);
    ASSERT_GT(all.size(), 1U);
    for (std::size_t i = 0; i < all.size(); ++i) {
      Exploration again(0);
      again.replay(choices[i]);
      EXPECT_EQ(explore(program, again), std::vector<std::string>{all[i]})
          << "bound " << bound << ", schedule " << i;
    }
  }
}

TEST(Exploration, ReplaysOlderValuesOfASearchThatAllowsThem) {
  const auto run = [](Exploration& exploration) {
    exploration.begin();
    const std::vector<std::uint32_t> only{0};
    exploration.decide(only);
    return std::vector<std::uint32_t>{exploration.pick(3), exploration.pick(3)};
  };
  Exploration exploration(1);
  std::set<std::vector<std::uint32_t>> all;
  do {
    const std::vector<std::uint32_t> values = run(exploration);
    all.insert(values);
    Exploration again(0);
    again.replay(exploration.choices());
    EXPECT_EQ(run(again), values);
    EXPECT_FALSE(again.next());
  } while (exploration.next());
  // The newest of both, or one of them one or two stores old.
  EXPECT_EQ(all, (std::set<std::vector<std::uint32_t>>{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 0}}));
}

}  // namespace
}  // namespace afdep::emulator
