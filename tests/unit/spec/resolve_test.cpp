#include "generator/spec/resolve.h"

#include <gtest/gtest.h>

#include "generator/spec/reader.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

Spec with_topology(const std::string& topology) {
  std::string text = kMinimal;
  const std::string ratio = "  ratio: \"2A2F\"\n";
  text.replace(text.find(ratio), ratio.size(), topology);
  Result<Spec> spec = parse(text, "f.yaml");
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : to_string(spec.diagnostics()));
  return spec.ok() ? *spec : Spec{};
}

TEST(ParseRatio, TakesBothForms) {
  EXPECT_EQ(parse_ratio("2A2F")->attention, 2);
  EXPECT_EQ(parse_ratio("11A:1F")->attention, 11);
  EXPECT_EQ(parse_ratio("11A:1F")->ffn, 1);
  EXPECT_EQ(parse_ratio("1024A1024F")->ffn, 1024);
  for (const char* bad : {"", "A", "2A", "2A2", "2A2Fx", "2a2f", "2A:2", "2A::2F", "2F2A", "+2A2F",
                          "2A 2F", "0A1F", "01A1F", "1025A1F", "99999999999999999999A1F", "11:1"}) {
    EXPECT_FALSE(parse_ratio(bad).has_value()) << bad;
  }
}

TEST(Ranks, AreTheRatioTimesTheScale) {
  const Spec spec = with_topology("  ratio: 3A:1F\n  scale: 4\n");
  EXPECT_EQ(attention_ranks(spec), 12);
  EXPECT_EQ(ffn_ranks(spec), 4);
}

TEST(Ranks, AreAsWritten) {
  const Spec spec = with_topology("  attention_ranks: 5\n  ffn_ranks: 2\n");
  EXPECT_EQ(attention_ranks(spec), 5);
  EXPECT_EQ(ffn_ranks(spec), 2);
}

TEST(Ranks, HaveRolesByTheOrder) {
  const Spec first = with_topology("  ratio: 3A2F\n");
  const Spec last = with_topology("  ratio: 3A2F\n  rank_order: attention_first\n");
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(is_ffn_rank(first, rank), rank < 2) << rank;
    EXPECT_EQ(is_ffn_rank(last, rank), rank >= 3) << rank;
  }
}

TEST(RedundantExperts, AutoIsTheFewestThatDivide) {
  Spec spec = with_topology("  ratio: 2A2F\n");
  spec.placement.redundant_experts.value = -1;
  EXPECT_EQ(redundant_experts(spec), 0);
  spec.topology.ffn_ranks.value = 3;  // 8 + 1 = 9
  EXPECT_EQ(redundant_experts(spec), 1);
  spec.topology.ffn_ranks.value = 5;  // 8 + 2 = 10
  EXPECT_EQ(redundant_experts(spec), 2);
}

TEST(DispatchScale, FollowsTheDtype) {
  Spec spec;
  const auto scale_of = [&](DispatchDtype dtype) {
    spec.dispatch_dtype.value = dtype;
    return dispatch_scale(spec);
  };
  EXPECT_EQ(scale_of(DispatchDtype::kBf16), Scale::kNone);
  EXPECT_EQ(scale_of(DispatchDtype::kFp16), Scale::kNone);
  EXPECT_EQ(scale_of(DispatchDtype::kFp8E4m3), Scale::kFp32Block128);
  EXPECT_EQ(scale_of(DispatchDtype::kFp8E5m2), Scale::kFp32Block128);
  EXPECT_EQ(scale_of(DispatchDtype::kMxfp8E4m3), Scale::kE8m0Block32);
  EXPECT_EQ(scale_of(DispatchDtype::kMxfp4E2m1), Scale::kE8m0Block32);
  EXPECT_EQ(scale_of(DispatchDtype::kInt8), Scale::kFp32Token);
  spec.dispatch_scale.value = Scale::kUe8m0Block128;
  EXPECT_EQ(scale_of(DispatchDtype::kFp8E4m3), Scale::kUe8m0Block128);
}

TEST(BucketProtocol, IsItsOwnOrTheOneForAll) {
  Spec spec;
  spec.protocol.value = Protocol::kAuto;
  spec.bucket_protocol.value = {{8, Protocol::kFlagInData}};
  EXPECT_EQ(bucket_protocol(spec, 8), Protocol::kFlagInData);
  EXPECT_EQ(bucket_protocol(spec, 32), Protocol::kAuto);
}

}  // namespace
}  // namespace afdep::spec
