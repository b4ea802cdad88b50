#include "runtime/residency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

// An SM of Hopper: CUDA C++ Programming Guide, "Compute Capabilities".
constexpr SmLimits kHopper{.ctas = 32,
                           .threads = 2048,
                           .registers = 65536,
                           .shared_bytes = 233472,
                           .narrow_shared_bytes = 65372,
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

// A bucket of four equal kernels.
bundle::Bucket bucket_of(int tokens, int attention_grid, int ffn_grid, int threads, int registers,
                         std::int64_t shared_bytes) {
  bundle::Bucket bucket;
  bucket.tokens = tokens;
  for (const auto operation : {bundle::Operation::kDispatch, bundle::Operation::kReceive,
                               bundle::Operation::kReply, bundle::Operation::kCollect}) {
    bundle::Kernel kernel = bundle::sample_kernel(operation, tokens);
    kernel.grid = kernel.role == bundle::Role::kFfn ? ffn_grid : attention_grid;
    kernel.threads = threads;
    kernel.shared_bytes = shared_bytes;
    kernel.compiled = {{"sm_90a", registers}};
    bucket.kernels.push_back(kernel);
  }
  return bucket;
}

bundle::Manifest manifest_of(std::vector<bundle::Bucket> buckets, int attention, int ffn) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.attention_ranks = attention;
  manifest.ffn_ranks = ffn;
  manifest.buckets = std::move(buckets);
  return manifest;
}

// Of a quarter's 16384 registers, a CTA of 384 threads x 80 takes 3 warps x 2560 = 7680, and one of
// 512 x 64 takes 4 x 2048 = 8192: any two fit an SM, although 512 threads x 80 registers would not.
TEST(Residency, AMixOfShapesIsNotTheWorstOfBoth) {
  const bundle::Manifest manifest = manifest_of(
      {bucket_of(8, 8, 16, 384, 80, 1024), bucket_of(512, 24, 24, 512, 64, 4096)}, 2, 2);
  // 4 x 24 running; 2 x 8 + 2 x 16 = 48 early ones of the small bucket.
  EXPECT_THAT(check_residency(manifest, "sm_90a", kHopper, 132, 4)->programmatic,
              ::testing::ElementsAre(true, false));
  // Two an SM. A rank whose last CTA waits has 23 others, its peers 3 x 24: 95 fill 47 SMs and a
  // half. With 48 SMs there is room; with 47 the last one might not enter.
  EXPECT_TRUE(check_residency(manifest, "sm_90a", kHopper, 48, 4).ok());
  const Result<Residency> full = check_residency(manifest, "sm_90a", kHopper, 47, 4);
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(full.diagnostics().front().message,
              ::testing::HasSubstr("= 96 CTAs must be resident on one GPU, which holds 47 SMs x 2 "
                                   "CTAs = 94"));
}

// 200 KB of shared memory: one such CTA keeps another out, but a small CTA does not. Two small ones
// do, by their registers: 3 x 7680 > 16384.
TEST(Residency, SmallCtasBesideOneThatFillsItsSharedMemory) {
  const bundle::Bucket small = bucket_of(8, 8, 16, 384, 80, 1024);
  const bundle::Bucket large = bucket_of(2048, 24, 24, 384, 80, 200 * 1024);
  const bundle::Manifest manifest = manifest_of({small, large}, 2, 2);
  // The worst for an attention rank's last large CTA: 23 of its own, 24 of the other attention
  // rank and 2 x 24 of the FFN ranks fill 95 SMs; 8 + 2 x 16 = 40 early small ones fill 20 more.
  // For an FFN rank's: 95, and 2 x 8 + 16 = 32 fill 16. Without early ones, 96 SMs do.
  const auto early = [&](int sms) {
    return check_residency(manifest, "sm_90a", kHopper, sms, 4)->programmatic;
  };
  EXPECT_THAT(early(132), ::testing::ElementsAre(true, false));
  EXPECT_THAT(early(116), ::testing::ElementsAre(true, false));
  EXPECT_THAT(early(115), ::testing::ElementsAre(false, false));
  EXPECT_THAT(early(96), ::testing::ElementsAre(false, false));
  EXPECT_FALSE(check_residency(manifest, "sm_90a", kHopper, 95, 4).ok());
}

// Ranks may be an exchange apart: the early kernels of one bucket on one role meet those of another
// bucket on the other role.
TEST(Residency, EarlyKernelsOfDifferentBucketsMeet) {
  // 1024 threads x 64 registers: an SM holds one.
  const bundle::Manifest manifest =
      manifest_of({bucket_of(1, 8, 1, 1024, 64, 0), bucket_of(2, 1, 8, 1024, 64, 0)}, 2, 2);
  const auto early = [&](int sms) {
    return check_residency(manifest, "sm_90a", kHopper, sms, 4)->programmatic;
  };
  // Each peer runs up to 8 CTAs. If only the first bucket starts early, an FFN rank's last CTA
  // meets 7 + 2 x (8 + 8) + (8 + 1) = 48 others; if both do, 7 + 3 x (8 + 8) = 55.
  EXPECT_THAT(early(56), ::testing::ElementsAre(true, true));
  EXPECT_THAT(early(55), ::testing::ElementsAre(true, false));
  EXPECT_THAT(early(49), ::testing::ElementsAre(true, false));
  EXPECT_THAT(early(48), ::testing::ElementsAre(false, false));
}

TEST(Residency, AKernelThatDoesNotFitAnEmptySmIsRefused) {
  const bundle::Manifest manifest = manifest_of({bucket_of(1, 1, 1, 1024, 128, 0)}, 1, 1);
  const Result<Residency> residency = check_residency(manifest, "sm_90a", kHopper, 132, 2);
  ASSERT_FALSE(residency.ok());
  EXPECT_THAT(residency.diagnostics().front().message,
              ::testing::HasSubstr("132 SMs x 0 CTAs = 0"));
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

// Blocks that wait for each other must all be there, also on a GPU of one's own: 10 fit an SM.
TEST(Residency, BlocksInStepFitAsAWhole) {
  bundle::Manifest manifest = bundle::sample_manifest();
  bundle::Kernel& kernel = manifest.buckets[1].kernels[1];
  kernel.grid_sync = true;
  kernel.grid = 20;
  EXPECT_TRUE(check_residency(manifest, "sm_90a", kHopper, 2, 1).ok());
  kernel.grid = 21;
  const Result<Residency> refused = check_residency(manifest, "sm_90a", kHopper, 2, 1);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics().front().message,
            "the 21 CTAs of afdep_sample_receive_b4 wait for each other, and the GPU holds 2 SMs x "
            "10 CTAs = 20 (of 64 threads, 48 registers a thread and 1024 bytes of shared memory)");
}

// 4A4F at 128 tokens: two CTAs of 384 threads x 80 registers an SM, 192 on 132 SMs.
bundle::Manifest packets_4a4f(std::int64_t receive_bytes) {
  bundle::Manifest manifest = manifest_of({bucket_of(128, 24, 24, 384, 80, 0)}, 4, 4);
  for (bundle::Kernel& kernel : manifest.buckets[0].kernels) {
    if (kernel.operation == bundle::Operation::kReceive) kernel.shared_bytes = receive_bytes;
  }
  return manifest;
}

TEST(Residency, CtasThatTakeEqualSharesLeaveL1ItsPart) {
  // 2144 + 1024 bytes round up to 3200: 20 CTAs of 65372.
  EXPECT_EQ(check_residency(packets_4a4f(2144), "sm_90a", kHopper, 132, 8)->cta_shared_bytes, 2144);
  // 31616 + 1024 = 32640: two of 65372.
  EXPECT_EQ(check_residency(packets_4a4f(31616), "sm_90a", kHopper, 132, 8)->cta_shared_bytes,
            31616);
  // 31744 + 1024 = 32768: one only, and 192 CTAs would not find room.
  EXPECT_EQ(check_residency(packets_4a4f(31744), "sm_90a", kHopper, 132, 8)->cta_shared_bytes,
            std::nullopt);
}

TEST(Residency, TheNarrowSplitMayNotCostAnEarlyLaunch) {
  // Four ranks x 8 CTAs and as many early ones: 64 on 52 SMs.
  const bundle::Manifest manifest = manifest_of({bucket_of(1, 8, 8, 384, 80, 31744)}, 2, 2);
  const Result<Residency> residency = check_residency(manifest, "sm_90a", kHopper, 52, 4);
  EXPECT_THAT(residency->programmatic, ::testing::ElementsAre(true));
  EXPECT_EQ(residency->cta_shared_bytes, std::nullopt);
}

TEST(Residency, ARankAloneSplitsByWhatItsKernelsTake) {
  EXPECT_EQ(check_residency(packets_4a4f(2144), "sm_90a", kHopper, 132, 1)->cta_shared_bytes, 2144);
  // 64 KB: no CTA fits the narrow split.
  EXPECT_EQ(check_residency(packets_4a4f(65536), "sm_90a", kHopper, 132, 1)->cta_shared_bytes,
            std::nullopt);
}

TEST_F(BufferTest, EveryCtaTakesAsMuchSharedMemoryAsTheLargest) {
  backend_.limits = kHopper;
  backend_.sms = 132;
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());  // which needs none; the sample's receive needs 1024
  EXPECT_EQ(backend_.launches[0].shared_bytes, 1024U);
  for (const KernelImage& image : backend_.images) {
    EXPECT_EQ(image.split, SharedSplit::kNarrow);
    EXPECT_EQ(image.cta_shared_bytes, 1024U);
  }
}

TEST_F(BufferTest, KernelsOfUnequalSharesAskForAllSharedMemory) {
  backend_.limits = kHopper;
  backend_.limits->narrow_shared_bytes = 2000;  // less than one CTA takes
  backend_.sms = 132;
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_EQ(backend_.launches[0].shared_bytes, 0U);
  ASSERT_FALSE(backend_.images.empty());
  for (const KernelImage& image : backend_.images) EXPECT_EQ(image.split, SharedSplit::kWide);
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
