#include "generator/verify/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace afdep::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One BF16 with 8 bits of mantissa: 1.0 is 0x3f80, its last place is 2^-7.
constexpr Bf16 kOne = 0x3f80;

TEST(Model, RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F), 0x3f80);             // a tie, to even: down
  EXPECT_EQ(to_bf16(1.0F + 0x1p-7F + 0x1p-8F), 0x3f82);   // a tie, to even: up
  EXPECT_EQ(to_bf16(1.0F + 0x1p-8F + 0x1p-20F), 0x3f81);  // over a tie
  EXPECT_EQ(to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // overflows to infinity
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(to_bf16(0x1p-133F), 0x0001);  // the smallest subnormal
  EXPECT_EQ(to_float(0xc040), -3.0F);
}

struct Row {
  int row, source, token, choice;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows(const WorkerOutput& output) {
  std::vector<Row> all;
  for (const ReceivedRow& r : output.rows) all.push_back({r.row, r.source, r.token, r.choice});
  return all;
}

// Two sources, two workers of two experts, top-2, rows aligned to 4. Worked out by hand.
struct Example {
  Shape shape{.sources = 2, .workers = 2, .hidden = 1, .experts = 4, .top_k = 2, .alignment = 4};
  std::vector<SourceInput> inputs{
      {.tokens = 3, .x = {1, 2, 3}, .ids = {1, 0, 3, 1, -1, -1}, .weights = std::vector<float>(6)},
      {.tokens = 1, .x = {4}, .ids = {1, 9}, .weights = std::vector<float>(2)}};
};

TEST(Model, RowsAreExpertMajorThenSourceThenToken) {
  const Example example;
  const auto received = receive_model(example.shape, example.inputs);
  ASSERT_EQ(received.size(), 2U);
  // Expert 0: source 0's token 0. Expert 1 from row 4 on: source 0's tokens 0 and 1, source 1's
  // token 0.
  EXPECT_THAT(received[0].counts, ElementsAre(1, 3));
  EXPECT_THAT(received[0].ends, ElementsAre(1, 7));
  EXPECT_THAT(rows(received[0]),
              ElementsAre(Row{0, 0, 0, 1}, Row{4, 0, 0, 0}, Row{5, 0, 1, 1}, Row{6, 1, 0, 0}));
  // Expert 2 has nothing and ends where it starts; expert 3 has source 0's token 1.
  EXPECT_THAT(received[1].counts, ElementsAre(0, 1));
  EXPECT_THAT(received[1].ends, ElementsAre(0, 1));
  EXPECT_THAT(rows(received[1]), ElementsAre(Row{0, 0, 1, 0}));
}

TEST(Model, RepeatedIdCountsOnce) {
  const Shape shape{.sources = 1, .workers = 1, .hidden = 1, .experts = 4, .top_k = 3};
  const auto received =
      receive_model(shape, {{.tokens = 1, .x = {1}, .ids = {2, 2, -7}, .weights = {0, 0, 0}}});
  EXPECT_THAT(received[0].counts, ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(rows(received[0]), ElementsAre(Row{0, 0, 0, 0}));
}

TEST(Model, SumsRoundPerWorkerThenPerSource) {
  const Example example;
  const auto received = receive_model(example.shape, example.inputs);
  std::vector<std::vector<Bf16>> replies{std::vector<Bf16>(7), std::vector<Bf16>(1)};
  const Bf16 last_place = to_bf16(0x1p-7F);
  const Bf16 half_place = to_bf16(0x1p-8F);
  replies[0] = {half_place, 0xffff, 0xffff, 0xffff, kOne, half_place, last_place};
  replies[1] = {kOne};
  const auto out = collect_model(example.shape, example.inputs, received, replies);
  // Token 0 of source 0: one worker, 1 + 2^-8 ties to 1. Token 1: half a place from worker 0, 1
  // from worker 1, ties to 1. Token 2 has no expert.
  EXPECT_THAT(out[0], ElementsAre(kOne, kOne, 0));
  EXPECT_THAT(out[1], ElementsAre(last_place));
}

TEST(Model, NoTokens) {
  const Shape shape{.sources = 1, .workers = 1, .hidden = 1, .experts = 2, .top_k = 1};
  const auto received = receive_model(shape, {SourceInput{}});
  EXPECT_THAT(received[0].ends, ElementsAre(0, 0));
  EXPECT_THAT(received[0].rows, IsEmpty());
  EXPECT_THAT(collect_model(shape, {SourceInput{}}, received, {{}})[0], IsEmpty());
}

}  // namespace
}  // namespace afdep::verify
