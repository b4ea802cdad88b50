// What the planner chooses on its own.
#include "generator/plan/planner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "generator/generate.h"
#include "generator/spec/reader.h"

namespace afdep::plan {
namespace {

Result<ExchangePlan> try_plan(int hidden, int bucket, const std::string& kernel = "{}") {
  const std::string text = fmt::format(R"(schema_version: 1
name: chosen
model: {{hidden_size: {}, num_experts: 128, top_k: 8}}
topology: {{ratio: "2A2F"}}
capacity: {{tokens_per_rank: {}, buckets: [{}]}}
kernel: {}
)",
                                       hidden, bucket, bucket, kernel);
  const Result<spec::Spec> spec = spec::parse(text, "chosen.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  return plan_exchange(*spec);
}

BucketPlan bucket_of(int hidden, int bucket, const std::string& kernel = "{}") {
  const Result<ExchangePlan> plan = try_plan(hidden, bucket, kernel);
  if (!plan.ok()) throw std::runtime_error(to_string(plan.diagnostics()));
  return plan->buckets.front();
}

// 224 rows of 4,096 bytes are 896 KiB.
TEST(Planner, PacketsUpTo896KibOfASource) {
  EXPECT_EQ(bucket_of(2048, 1).protocol, Protocol::kFlagInData);
  EXPECT_EQ(bucket_of(2048, 224).protocol, Protocol::kFlagInData);
  EXPECT_EQ(bucket_of(2048, 225).protocol, Protocol::kBulk);
}

// 109 rows of 14,336 bytes are just below 1.5 MiB; 113 rows of 8,192 bytes are 904 KiB.
TEST(Planner, PacketsUpTo1536KibOfAFewRows) {
  EXPECT_EQ(bucket_of(7168, 109).protocol, Protocol::kFlagInData);
  EXPECT_EQ(bucket_of(7168, 110).protocol, Protocol::kBulk);
  EXPECT_EQ(bucket_of(4096, 112).protocol, Protocol::kFlagInData);
  EXPECT_EQ(bucket_of(4096, 113).protocol, Protocol::kBulk);
}

// Shared memory of a CTA, 227 KiB, holds at least three rows of 65,536 bytes and none of 131,072.
TEST(Planner, BulkOnlyWhereItsRingsFit) {
  EXPECT_EQ(bucket_of(32768, 32).protocol, Protocol::kBulk);
  EXPECT_EQ(bucket_of(65536, 32).protocol, Protocol::kChunked);
  const Result<ExchangePlan> forced = try_plan(65536, 32, "{protocol: bulk}");
  ASSERT_FALSE(forced.ok());
  EXPECT_EQ(
      to_string(forced.diagnostics()),
      "chosen.yaml:5:33: error[E206]: bucket 32: a ring of two rows of 131072 bytes does not fit "
      "the 232448 bytes of shared memory of a CTA that bulk needs\n"
      "  note: force kernel.protocol: chunked for this bucket\n");
}

// Bytes of a source: x is read, its rows and choices are sent; replies are read,
// the sums written. With one worker every token has one row there: 264 x (4 x 4,096 + 6 x 16)
// bytes, since 8 choices and their weights take 3 packets each, and the counts of 128 experts, 22
// packets, from each of 24 slices (of 11 tokens).
TEST(Planner, BulkTraffic) {
  const std::string text = R"(schema_version: 1
name: chosen
model: {hidden_size: 2048, num_experts: 128, top_k: 8}
topology: {ratio: "1A1F"}
capacity: {tokens_per_rank: 264, buckets: [264]}
)";
  const Result<spec::Spec> spec = spec::parse(text, "chosen.yaml");
  ASSERT_TRUE(spec.ok());
  const Result<ExchangePlan> plan = plan_exchange(*spec);
  ASSERT_TRUE(plan.ok());
  EXPECT_NEAR(plan->buckets.front().traffic.source_memory_bytes,
              264 * (4 * 4096 + 6 * 16) + 24 * 22 * 16, 1e-3);
}

}  // namespace
}  // namespace afdep::plan
