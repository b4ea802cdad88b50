#include "generator/plan/floor.h"

#include <gtest/gtest.h>

#include "generator/plan/sizing.h"
#include "runtime/support/check.h"
#include "tests/unit/plan/sample_plan.h"

namespace afdep::plan {
namespace {

using testing::sample_plan;

MachineRates round_rates() {
  MachineRates rates;
  rates.graph_node_gap_us = 0.6;
  rates.programmatic_gap_us = 0.5;
  rates.flag_hop_us = 1.0;
  rates.link_gb_per_s = 100;
  rates.sms = 100;
  rates.register_copy = {{10, 1.0}, {50, 3.0}};
  rates.bulk_copy = {{10, 2.0}};
  return rates;
}

TEST(CopyRateTable, IsLinearBetweenPointsAndFlatAfterThem) {
  const std::vector<CopyRate> points{{10, 1.0}, {50, 3.0}};
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(points, 5), 0.5);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(points, 10), 1.0);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(points, 30), 2.0);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(points, 50), 3.0);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(points, 132), 3.0);
  EXPECT_THROW((void)copy_rate_tb_per_s({}, 1), InternalError);
}

TEST(CopyRateTable, H200) {
  const MachineRates rates = h200_rates();
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(rates.register_copy, 24), 2.20);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(rates.register_copy, 132), 3.96);
  EXPECT_DOUBLE_EQ(copy_rate_tb_per_s(rates.bulk_copy, 33), 3.07);
}

// Two launches a rank, each released early by the kernel before it, and two hops.
TEST(Floor, LaunchesAndHops) {
  ExchangePlan plan = sample_plan();
  BucketPlan& bucket = plan.buckets[0];
  Floor floor = floor_of(plan, bucket, round_rates());
  EXPECT_DOUBLE_EQ(floor.launch_us, 2 * 0.5);
  EXPECT_DOUBLE_EQ(floor.hop_us, 2 * 1.0);

  // Without its release, what follows dispatch waits for dispatch to end.
  std::erase_if(bucket.kernels[0].steps,
                [](const Step& step) { return step.kind == StepKind::kReleaseNextKernel; });
  floor = floor_of(plan, bucket, round_rates());
  EXPECT_DOUBLE_EQ(floor.launch_us, 0.5 + 0.6);
}

// Attention runs 8 CTAs (0.8 TB/s), FFN 24 (1.0 + 14/40 x 2.0 = 1.7 TB/s).
TEST(Floor, BytesTakeTheLargerOfMemoryAndWire) {
  ExchangePlan plan = sample_plan();
  BucketPlan& bucket = plan.buckets[0];
  bucket.traffic = {.dispatch_wire_bytes = 1000,
                    .reply_wire_bytes = 1000,
                    .worker_memory_bytes = 17e6,
                    .source_memory_bytes = 4e6};
  EXPECT_DOUBLE_EQ(floor_of(plan, bucket, round_rates()).bytes_us, 10.0);  // worker: 17 MB
  bucket.traffic.source_memory_bytes = 16e6;
  EXPECT_DOUBLE_EQ(floor_of(plan, bucket, round_rates()).bytes_us, 20.0);  // source: 16 MB
  // 1.5 MB out and 1.5 MB in at 100 GB/s.
  bucket.traffic.dispatch_wire_bytes = 1.5e6;
  bucket.traffic.reply_wire_bytes = 1.5e6;
  EXPECT_DOUBLE_EQ(floor_of(plan, bucket, round_rates()).bytes_us, 30.0);
}

// Seven sources fill one worker's link: 7 x 1 MB in and 7 MB out at 100 GB/s.
TEST(Floor, AWorkersLinkCarriesAllSources) {
  ExchangePlan plan = sample_plan({.attention_ranks = 7, .ffn_ranks = 1});
  BucketPlan& bucket = plan.buckets[0];
  bucket.traffic = {.dispatch_wire_bytes = 1e6,
                    .reply_wire_bytes = 7e6,
                    .worker_memory_bytes = 1,
                    .source_memory_bytes = 1};
  EXPECT_DOUBLE_EQ(floor_of(plan, bucket, round_rates()).bytes_us, 140.0);
}

TEST(Floor, BulkCopiesHaveTheirOwnRates) {
  ExchangePlan plan = sample_plan();
  BucketPlan& bucket = plan.buckets[0];
  bucket.protocol = Protocol::kBulk;
  bucket.traffic = {.dispatch_wire_bytes = 1,
                    .reply_wire_bytes = 1,
                    .worker_memory_bytes = 6e6,
                    .source_memory_bytes = 1};
  EXPECT_DOUBLE_EQ(floor_of(plan, bucket, round_rates()).bytes_us, 3.0);
}

// 2 x 4 MB + 2 x 17 MB by 2 x 8 + 2 x 24 = 64 CTAs at 3.0 TB/s = 14 us, more than any rank alone.
TEST(Floor, LoopbackSharesOneMemory) {
  ExchangePlan plan = sample_plan();
  BucketPlan& bucket = plan.buckets[0];
  bucket.traffic = {.dispatch_wire_bytes = 1e9,
                    .reply_wire_bytes = 1e9,
                    .worker_memory_bytes = 17e6,
                    .source_memory_bytes = 4e6};
  const Floor floor = loopback_floor_of(plan, bucket, round_rates());
  EXPECT_DOUBLE_EQ(floor.bytes_us, 14.0);
  EXPECT_DOUBLE_EQ(floor.launch_us, 1.0);
  EXPECT_DOUBLE_EQ(floor.hop_us, 2.0);
  EXPECT_DOUBLE_EQ(floor.total_us(), 17.0);
}

// The seeds' figures for windows dominated by rows: half of the union sizing at 2A2F, three
// quarters at 3A1F and 1A3F.
TEST(UnionSizing, RowsOfEveryRank) {
  const auto part = [](int attention, int ffn) {
    const ExchangePlan plan = sample_plan({.attention_ranks = attention,
                                           .ffn_ranks = ffn,
                                           .hidden = 2048,
                                           .experts = 96,
                                           .top_k = 8,
                                           .packet_bucket = 8,
                                           .chunked_bucket = 512});
    return static_cast<double>(plan.window_bytes) / static_cast<double>(union_window_bytes(plan));
  };
  EXPECT_NEAR(part(2, 2), 0.50, 0.01);
  EXPECT_NEAR(part(3, 1), 0.75, 0.01);
  EXPECT_NEAR(part(1, 3), 0.75, 0.02);
}

}  // namespace
}  // namespace afdep::plan
