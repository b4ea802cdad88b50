// Layouts and corners that no shipped spec has, each with both protocols.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "generator/verify/verify.h"

namespace afdep::verify {
namespace {

struct Layout {
  const char* name;
  const char* ratio;
  int experts;
  int top_k;
  int hidden = 64;
  const char* more = "";
};

class EveryLayout : public ::testing::TestWithParam<Layout> {};

TEST_P(EveryLayout, Verifies) {
  const Layout& layout = GetParam();
  const std::string text = fmt::format(
      "schema_version: 1\n"
      "name: layout\n"
      "model: {{hidden_size: {}, num_experts: {}, top_k: {}}}\n"
      "topology: {{ratio: \"{}\"}}\n"
      "capacity: {{tokens_per_rank: 64, buckets: [4, 64]}}\n"
      "kernel: {{num_sms: 4, protocol: {{4: flag_in_data, 64: chunked}}}}\n"
      "{}",
      layout.hidden, layout.experts, layout.top_k, layout.ratio, layout.more);
  VerifyOptions options;
  options.seeds = 2;
  const Result<VerifyReport> report = verify(text, "layout.yaml", options);
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  EXPECT_TRUE(report->failures.empty()) << to_string(report->failures);
  EXPECT_EQ(report->buckets.size(), 2U);
  EXPECT_GT(report->rows, 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryLayout,
    ::testing::Values(
        Layout{"one_and_one", "1A1F", 8, 2}, Layout{"three_sources", "3A1F", 8, 3},
        Layout{"fewer_sources_than_workers", "1A3F", 9, 4}, Layout{"five_and_two", "5A2F", 8, 8},
        Layout{"seven_and_one", "7A1F", 16, 6}, Layout{"top_one", "2A3F", 6, 1},
        Layout{"top_one_one_worker", "2A1F", 4, 1},
        Layout{"more_workers_than_top_k", "2A6F", 48, 3},
        Layout{"as_many_workers_as_top_k", "2A4F", 8, 4},
        Layout{"one_expert_a_worker", "2A4F", 4, 2}, Layout{"every_expert_chosen", "2A2F", 4, 4},
        Layout{"top_32", "2A2F", 64, 32}, Layout{"thirty_workers", "2A30F", 60, 4},
        Layout{"smallest_row", "2A2F", 4, 2, 8}, Layout{"odd_row", "2A2F", 4, 2, 2880},
        Layout{"int32", "2A2F", 8, 2, 64, "routing: {id_dtype: int32}\n"},
        Layout{"aligned", "2A2F", 8, 2, 64, "receive: {expert_alignment: 8}\n"},
        Layout{"zeroed", "2A2F", 8, 2, 64, "receive: {expert_alignment: 4, padding: zero}\n"},
        Layout{"unchecked", "2A2F", 8, 2, 64, "checks: {route: \"off\"}\n"},
        Layout{"trapping", "2A2F", 8, 2, 64, "checks: {route: trap}\n"},
        Layout{"eager_only", "2A2F", 8, 2, 64, "graph: {mode: \"off\"}\n"},
        Layout{"many_experts", "1A2F", 2048, 10}),
    [](const ::testing::TestParamInfo<Layout>& each) { return std::string(each.param.name); });

TEST(Verify, TrueSizeOfOneBucket) {
  VerifyOptions options;
  options.seeds = 1;
  options.bucket = 4;
  options.true_size = true;
  const Result<VerifyReport> report = verify(
      "schema_version: 1\nname: real\nmodel: {preset: qwen3-30b-a3b}\n"
      "topology: {ratio: \"2A2F\"}\ncapacity: {tokens_per_rank: 8, buckets: [4, 8]}\n",
      "real.yaml", options);
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  EXPECT_TRUE(report->failures.empty()) << to_string(report->failures);
  EXPECT_EQ(report->hidden, 2048);
  ASSERT_EQ(report->buckets.size(), 1U);
  EXPECT_EQ(report->buckets[0].tested, 4);
}

TEST(Reduce, KeepsWhatARowLeavesInPackets) {
  for (const int hidden : {2048, 2880, 3072, 4096, 5120, 6144, 7168}) {
    for (const int ranks : {2, 20, 64}) {
      const int reduced = reduced_hidden(hidden, ranks);
      EXPECT_EQ(reduced * 2 % 12, hidden * 2 % 12) << hidden;
      EXPECT_EQ(reduced * 2 % 16, 0) << hidden;
      EXPECT_LE(reduced, 280);
    }
  }
  EXPECT_EQ(reduced_hidden(32, 4), 32);
}

TEST(Reduce, RefusesABucketThatTheSpecDoesNotHave) {
  const Result<Subject> subject = reduce(
      "schema_version: 1\nname: x\nmodel: {hidden_size: 64, num_experts: 4, top_k: 2}\n"
      "topology: {ratio: \"1A1F\"}\ncapacity: {tokens_per_rank: 8}\n",
      "x.yaml", 4);
  ASSERT_FALSE(subject.ok());
  EXPECT_EQ(to_string(subject.diagnostics()),
            "error[E208]: bucket 4 is not a bucket of x\n  note: capacity.buckets holds 8\n");
}

}  // namespace
}  // namespace afdep::verify
