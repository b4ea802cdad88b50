#include "generator/plan/resources.h"

#include <gtest/gtest.h>

namespace afdep::plan {
namespace {

// An SM of sm_90: 2048 threads, 65536 registers, 233472 bytes of shared memory, of which each CTA
// takes 1024 for itself (CUDA C++ programming guide, compute capability 9.0).
TEST(Resources, LargestOfEverythingOfARole) {
  const Resources held =
      resources_of({{.grid = 8, .threads = 352, .registers = 45},
                    {.grid = 24, .threads = 128, .registers = 60, .shared_bytes = 4208}},
                   132);
  EXPECT_EQ(held.ctas, 24);
  EXPECT_EQ(held.threads, 352);
  EXPECT_EQ(held.registers, 352 * 48);  // given out in eights; 128 x 64 is less
  EXPECT_EQ(held.shared_bytes, 4208);
  EXPECT_EQ(held.sms, 24);
  EXPECT_EQ(held.sms_left, 108);
  EXPECT_EQ(held.threads_left, 1696);
  EXPECT_EQ(held.registers_left, 65536 - 16896);
  EXPECT_EQ(held.shared_bytes_left, 233472 - 4208 - 1024);
}

TEST(Resources, ACtaThatFillsItsSmLeavesNothing) {
  const Resources held =
      resources_of({{.grid = 200, .threads = 2048, .registers = 32, .shared_bytes = 232448}}, 132);
  EXPECT_EQ(held.sms, 132);
  EXPECT_EQ(held.sms_left, 0);
  EXPECT_EQ(held.threads_left, 0);
  EXPECT_EQ(held.registers_left, 0);
  EXPECT_EQ(held.shared_bytes_left, 0);
}

TEST(Resources, OfThePlanAreThoseOfTheRole) {
  BucketPlan bucket;
  Kernel dispatch;
  dispatch.grid = 8;
  dispatch.threads = 352;
  dispatch.register_ceiling = 88;
  Kernel receive = dispatch;
  receive.role = Role::kFfn;
  receive.grid = 16;
  receive.shared_bytes = 848;
  bucket.kernels = {dispatch, receive};
  EXPECT_EQ(resources_of(bucket, Role::kAttention, 132).ctas, 8);
  EXPECT_EQ(resources_of(bucket, Role::kFfn, 132).shared_bytes, 848);
  EXPECT_EQ(resources_of(bucket, Role::kFfn, 132).registers, 352 * 88);
  EXPECT_EQ(sm_count_of(Arch::kSm90a), 132);
  EXPECT_EQ(sm_count_of(Arch::kSm100a), 148);
}

}  // namespace
}  // namespace afdep::plan
