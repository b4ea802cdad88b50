#include "runtime/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

// An SM of Hopper: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr SmLimits kHopper{.ctas = 32,
                           .threads = 2048,
                           .registers = 65536,
                           .shared_bytes = 233472,
                           .reserved_shared_bytes = 1024};

TEST(CtasPerSm, IsTheTightestLimit) {
  EXPECT_EQ(ctas_per_sm(kHopper, 32, 16, 0), 32);   // CTAs
  EXPECT_EQ(ctas_per_sm(kHopper, 1024, 32, 0), 2);  // threads
  EXPECT_EQ(ctas_per_sm(kHopper, 512, 64, 0), 2);   // registers: 16 warps x 64 x 32 = 32768
  EXPECT_EQ(ctas_per_sm(kHopper, 512, 65, 0), 1);   // 72 registers: 7 warps a quarter, 28 in all
  EXPECT_EQ(ctas_per_sm(kHopper, 352, 64, 0), 2);   // 11 warps count as 12: 32 / 12
  EXPECT_EQ(ctas_per_sm(kHopper, 128, 32, 100 * 1024), 2);  // shared: 228 KB / 101 KB
  EXPECT_EQ(ctas_per_sm(kHopper, 128, 32, 227 * 1024), 1);
  EXPECT_EQ(ctas_per_sm(kHopper, 1024, 128, 0), 0);  // does not launch
}

// The sample's kernels: 64 threads, 48 registers on sm_90a, at most 1 KB of shared memory: 2 warps,
// of which 4 are counted. 16384 / (48 x 32) = 10 warps a quarter, so 40 / 4 = 10 CTAs an SM.
TEST(Residency, LoopbackNeedsTheSumOfAllRanks) {
  const bundle::Manifest manifest = bundle::sample_manifest();
  // 2 attention ranks x 2 CTAs + 1 FFN rank x 3 = 7 CTAs; an SM holds 10.
  const Result<Residency> fits = check_residency(manifest, "sm_90a", kHopper, 1, 3);
  ASSERT_TRUE(fits.ok());
  EXPECT_THAT(fits->programmatic, ::testing::Each(false));  // 14 do not fit
  // 14 fit two SMs, but are more than five CTAs to four SMs.
  EXPECT_THAT(check_residency(manifest, "sm_90a", kHopper, 2, 3)->programmatic,
              ::testing::Each(false));
  EXPECT_THAT(check_residency(manifest, "sm_90a", kHopper, 12, 3)->programmatic,
              ::testing::Each(true));
}

TEST(Residency, ASmallBucketMayStartEarlyBesideALargeOne) {
  bundle::Manifest manifest = bundle::sample_manifest();
  ASSERT_EQ(manifest.buckets.size(), 2U);
  for (bundle::Kernel& kernel : manifest.buckets[0].kernels) kernel.grid = 1;
  for (bundle::Kernel& kernel : manifest.buckets[1].kernels) kernel.grid = 8;
  // 3 ranks x 8 = 24 CTAs, and 3 more early ones, fit 5 SMs x 10; two kernels of the small bucket
  // are 6 CTAs on 5 SMs, of the large one 48.
  const Result<Residency> residency = check_residency(manifest, "sm_90a", kHopper, 5, 3);
  ASSERT_TRUE(residency.ok());
  EXPECT_THAT(residency->programmatic, ::testing::ElementsAre(true, false));
}

TEST(Residency, TooManyCtasAreRefusedWithTheSum) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.buckets[1].kernels[1].grid = 7;
  const Result<Residency> residency = check_residency(manifest, "sm_90a", kHopper, 1, 3);
  ASSERT_FALSE(residency.ok());
  EXPECT_EQ(residency.diagnostics().front().code, ErrorCode::kLaunch);
  EXPECT_EQ(residency.diagnostics().front().message,
            "2 attention ranks x 2 CTAs + 1 FFN ranks x 7 CTAs = 11 CTAs must be resident on one "
            "GPU, which holds 1 SMs x 10 CTAs = 10 (of up to 64 threads, 48 registers a thread and "
            "1024 bytes of shared memory)");
}

TEST(Residency, ARankAloneOnItsGpuAlwaysFits) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.buckets[1].kernels[1].grid = 1000;
  EXPECT_THAT(check_residency(manifest, "sm_90a", kHopper, 1, 1)->programmatic,
              ::testing::Each(true));
}

TEST_F(BufferTest, CreationRefusesWhatCannotBeResident) {
  backend_.limits = kHopper;
  backend_.sms = 1;
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.buckets[1].kernels[1].grid = 7;
  const bundle::Bundle bundle = bundle_of(manifest);
  ranks_ = make_loopback(backend_, 3);
  EXPECT_THAT(message_of(Buffer::create(*ranks_[0], bundle, {})), ::testing::HasSubstr("E206"));
}

TEST_F(BufferTest, LaunchesArePlainWhereTwoKernelsOfARankDoNotFit) {
  backend_.limits = kHopper;
  backend_.sms = 1;
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_FALSE(backend_.launches[0].programmatic);
  EXPECT_FALSE(source().programmatic(2));
}

}  // namespace
}  // namespace afdep
