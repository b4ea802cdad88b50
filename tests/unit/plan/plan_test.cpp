#include "generator/plan/plan.h"

#include <gtest/gtest.h>

#include "runtime/support/check.h"
#include "tests/unit/plan/sample_plan.h"

namespace afdep::plan {
namespace {

using testing::sample_plan;

TEST(ReceiveRows, OneRowAnAssignment) {
  // 2 sources x 8 tokens x 2 choices, 8 local experts.
  EXPECT_EQ(sample_plan().receive_rows(8), 32);
}

TEST(ReceiveRows, ATokenHasNoMoreRowsThanLocalExperts) {
  // 16 workers own one expert each: a token has one row at most.
  EXPECT_EQ(sample_plan({.ffn_ranks = 16}).receive_rows(8), 16);
}

TEST(ReceiveRows, Alignment) {
  ExchangePlan plan = sample_plan();
  plan.expert_alignment = 4;
  // 32 rows in 8 experts: at worst each expert ends 3 rows past a multiple of 4, 32 + 8 x 3 = 56.
  EXPECT_EQ(plan.receive_rows(8), 56);
  // Bucket 1: 4 rows in at most 4 experts, each alone in its 4 rows.
  EXPECT_EQ(plan.receive_rows(1), 16);
  plan.expert_alignment = 256;
  // 8 experts with at least one row and at most 16 take 256 rows each.
  EXPECT_EQ(plan.receive_rows(8), 8 * 256);
}

TEST(WorldRank, FollowsTheRankOrder) {
  ExchangePlan plan = sample_plan({.attention_ranks = 3, .ffn_ranks = 2});
  EXPECT_EQ(plan.world_rank(Role::kFfn, 1), 1);
  EXPECT_EQ(plan.world_rank(Role::kAttention, 0), 2);
  plan.ffn_first = false;
  EXPECT_EQ(plan.world_rank(Role::kFfn, 1), 4);
  EXPECT_EQ(plan.world_rank(Role::kAttention, 0), 0);
  EXPECT_THROW((void)plan.world_rank(Role::kFfn, 2), InternalError);
}

TEST(Strings, AsWritten) {
  EXPECT_EQ(to_string(Role::kFfn), "ffn");
  EXPECT_EQ(to_string(Operation::kCollectView), "collect_view");
  EXPECT_EQ(to_string(Protocol::kFlagInData), "flag_in_data");
  EXPECT_EQ(to_string(IdType::kInt64), "int64");
  EXPECT_EQ(to_string(RouteCheck::kReport), "report");
  EXPECT_EQ(to_string(Arch::kSm100a), "sm_100a");
  EXPECT_EQ(to_string(SignalKind::kReleaseFlag), "release_flag");
  EXPECT_EQ(to_string(StepKind::kAwaitPreviousKernel), "await_previous_kernel");
  EXPECT_THROW((void)to_string(static_cast<Role>(7)), InternalError);
}

}  // namespace
}  // namespace afdep::plan
