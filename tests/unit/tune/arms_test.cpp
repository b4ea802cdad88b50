#include "generator/tune/arms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/tune/sample.h"

namespace afdep::tune {
namespace {

using spec::Protocol;
using ::testing::ElementsAre;

std::set<Protocol> protocols_of(const BucketArms& bucket) {
  std::set<Protocol> found;
  for (const Arm& arm : bucket.arms) {
    for (const Variant& variant : arm.variants) found.insert(variant.protocol);
  }
  return found;
}

std::set<std::pair<int, int>> pairs_of(const BucketArms& bucket) {
  std::set<std::pair<int, int>> found;
  for (const Arm& arm : bucket.arms) {
    for (const Variant& variant : arm.variants) {
      found.emplace(variant.sms.attention, variant.sms.ffn);
    }
  }
  return found;
}

TEST(Arms, ProtocolsThatCannotWinAreLeftOut) {
  const auto arms = arms_of(sample_spec(), {.sms = {24}, .sm_count = 132});
  ASSERT_TRUE(arms.ok());
  ASSERT_EQ(arms->size(), 3u);
  // Rows of 4 KiB: 4 KiB, 512 KiB and 8 MiB of payload.
  EXPECT_THAT(protocols_of((*arms)[0]), ElementsAre(Protocol::kFlagInData));
  EXPECT_THAT(protocols_of((*arms)[1]),
              ElementsAre(Protocol::kFlagInData, Protocol::kChunked, Protocol::kBulk));
  EXPECT_THAT(protocols_of((*arms)[2]), ElementsAre(Protocol::kChunked, Protocol::kBulk));
}

TEST(Arms, EveryCtaHasAnSmOfItsOwn) {
  const auto arms = arms_of(sample_spec(), {.sms = {16, 24, 48}, .sm_count = 132});
  ASSERT_TRUE(arms.ok());
  // 2 x attention + 2 x FFN <= 132.
  EXPECT_THAT(pairs_of(arms->back()),
              ElementsAre(std::pair(16, 16), std::pair(16, 24), std::pair(16, 48),
                          std::pair(24, 16), std::pair(24, 24), std::pair(48, 16)));
}

TEST(Arms, ThatDoNotFitAreRefusedWithTheSum) {
  const auto arms = arms_of(sample_spec(), {.sms = {48, 64}, .sm_count = 132});
  ASSERT_FALSE(arms.ok());
  EXPECT_EQ(arms.diagnostics()[0].code, ErrorCode::kLaunch);
  EXPECT_EQ(arms.diagnostics()[0].message,
            "2 attention ranks x 48 SMs + 2 FFN ranks x 48 SMs = 192 SMs must fit one GPU of 132");
}

TEST(Arms, OneTokenHasTheSameKernelsWithAnyNumberOfSms) {
  const auto arms = arms_of(sample_spec(), {.sms = {16, 24, 32}, .sm_count = 132});
  ASSERT_TRUE(arms.ok());
  ASSERT_EQ((*arms)[0].arms.size(), 1u);
  EXPECT_EQ((*arms)[0].arms[0].variants.size(), 9u);
  EXPECT_EQ((*arms)[0].arms[0].name(), "1 flag_in_data 16+16");
  EXPECT_EQ((*arms)[2].arms.size(), 2u * 9u);
}

TEST(Arms, WhatTheSpecSaysStays) {
  const auto arms = arms_of(sample_spec("kernel: {num_sms: {ffn: 40}, protocol: {128: chunked}}\n"),
                            {.sms = {16, 24}, .sm_count = 132});
  ASSERT_TRUE(arms.ok());
  EXPECT_THAT(protocols_of((*arms)[1]), ElementsAre(Protocol::kChunked));
  EXPECT_THAT(pairs_of((*arms)[1]), ElementsAre(std::pair(16, 40), std::pair(24, 40)));
}

TEST(Arms, SpecOfAVariantHoldsThatBucketAlone) {
  const spec::Spec one =
      spec_of(sample_spec(), {.bucket = 128, .protocol = Protocol::kBulk, .sms = {16, 32}});
  EXPECT_THAT(one.capacity.buckets.value, ElementsAre(128));
  EXPECT_EQ(one.capacity.tokens_per_rank.value, 128);
  EXPECT_EQ(one.num_sms.value, (spec::NumSms{16, 32}));
  EXPECT_EQ(one.bucket_protocol.value, (std::map<int, Protocol>{{128, Protocol::kBulk}}));
}

}  // namespace
}  // namespace afdep::tune
