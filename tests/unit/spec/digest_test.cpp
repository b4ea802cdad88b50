#include "generator/spec/digest.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "generator/spec/reader.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

Spec parsed(const std::string& text) {
  Result<Spec> spec = parse(text, "f.yaml");
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : to_string(spec.diagnostics()));
  return spec.ok() ? *spec : Spec{};
}

std::string digest_of(const std::string& more) { return digest(parsed(kMinimal + more)); }

TEST(Digest, IsThirtyTwoHexadecimalDigits) {
  const std::string value = digest_of("");
  EXPECT_EQ(value.size(), 32U);
  EXPECT_EQ(value.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST(Digest, IgnoresNameCacheAndStats) {
  std::string renamed = kMinimal;
  renamed.replace(renamed.find("minimal"), 7, "other");
  EXPECT_EQ(digest(parsed(renamed)), digest_of(""));
  EXPECT_EQ(digest_of("cache: {dir: /tmp/x, mode: aot}\n"), digest_of(""));
  EXPECT_EQ(digest_of("kernel: {tuned_on: NVIDIA H200}\n"), digest_of(""));
  EXPECT_EQ(digest_of("stats: {cost: false}\n"), digest_of(""));
  Spec spec = parsed(kMinimal);
  spec.stats_cost.value = true;
  spec.stats_expert_counts.value = true;
  EXPECT_EQ(digest(spec), digest_of(""));
}

TEST(Digest, IsOfTheResolvedValues) {
  // A written default, a preset's numbers written out, and ranks for a ratio change nothing.
  EXPECT_EQ(digest_of("routing: {id_dtype: int64}\nablation: {exit_barrier: false}\n"),
            digest_of(""));
  EXPECT_EQ(digest_of("dispatch: {scale: none}\nkernel: {protocol: {512: auto}}\n"), digest_of(""));
  EXPECT_EQ(digest_of("placement: {redundant_experts: auto}\n"), digest_of(""));
  const std::string rest = "topology: {ratio: 1A1F, scale: 2}\ncapacity: {tokens_per_rank: 4}\n";
  const std::string head = "schema_version: 1\nname: a\n";
  const std::string preset = digest(parsed(head + "model: {preset: mixtral-8x7b}\n" + rest));
  EXPECT_EQ(preset, digest(parsed(head + "model: {hidden_size: 4096, num_experts: 8, top_k: 2}\n"
                                         "topology: {attention_ranks: 2, ffn_ranks: 2}\n"
                                         "capacity: {tokens_per_rank: 4, buckets: [4]}\n")));
}

// Each change to one field gives a digest of its own.
TEST(Digest, ChangesWithEveryOtherField) {
  using Change = std::function<void(Spec&)>;
  const Change changes[] = {
      [](Spec& s) { s.model.hidden_size.value = 264; },
      [](Spec& s) { s.model.num_experts.value = 16; },
      [](Spec& s) { s.model.top_k.value = 3; },
      [](Spec& s) { s.topology.ratio.value = "3A2F"; },
      [](Spec& s) { s.topology.ratio.value = "2A4F"; },
      [](Spec& s) { s.topology.scale.value = 3; },
      [](Spec& s) { s.topology.roles.value = Roles::kSymmetric; },
      [](Spec& s) { s.topology.rank_order.value = RankOrder::kAttentionFirst; },
      [](Spec& s) { s.topology.domains.value = {{"a", 2, 1, 1, {}}}; },
      [](Spec& s) { s.topology.domains.value = {{"a", 1, 0, 0, {0, 1, 2, 3}}}; },
      [](Spec& s) { s.topology.mixed.value = Mixed::kDirectional; },
      [](Spec& s) { s.topology.transport.value = Transport::kLoopback; },
      [](Spec& s) { s.capacity.tokens_per_rank.value = 513; },
      [](Spec& s) { s.capacity.buckets.value = {1, 512}; },
      [](Spec& s) { s.id_dtype.value = IdDtype::kInt32; },
      [](Spec& s) { s.dispatch_dtype.value = DispatchDtype::kFp16; },
      [](Spec& s) { s.dispatch_scale.value = Scale::kFp32Token; },
      [](Spec& s) { s.dispatch_quantize.value = Quantize::kKernel; },
      [](Spec& s) { s.reply_dtype.value = ReplyDtype::kFp32; },
      [](Spec& s) { s.reply_min_bucket.value = 8; },
      [](Spec& s) { s.reply_allow_lossy.value = true; },
      [](Spec& s) { s.weights_applied_by.value = AppliedBy::kSource; },
      [](Spec& s) { s.receive_layout.value = ReceiveLayout::kRankMajor; },
      [](Spec& s) { s.expert_alignment.value = 8; },
      [](Spec& s) { s.receive_padding.value = Padding::kZero; },
      [](Spec& s) { s.host_counts.value = true; },
      [](Spec& s) { s.placement.kind.value = PlacementKind::kRoundRobin; },
      [](Spec& s) { s.placement.redundant_experts.value = 2; },
      [](Spec& s) { s.placement.map.value = {{0}, {1}}; },
      [](Spec& s) { s.shared_experts_count.value = 1; },
      [](Spec& s) { s.shared_experts_mode.value = SharedMode::kRemote; },
      [](Spec& s) { s.arch.value = {Arch::kSm100a}; },
      [](Spec& s) { s.num_sms.value = {24, 24}; },
      [](Spec& s) { s.num_sms.value = {0, 24}; },
      [](Spec& s) { s.protocol.value = Protocol::kChunked; },
      [](Spec& s) { s.bucket_protocol.value = {{512, Protocol::kFlagInData}}; },
      [](Spec& s) { s.microbatches.value = 2; },
      [](Spec& s) { s.graph_mode.value = GraphMode::kOff; },
      [](Spec& s) { s.route_check.value = RouteCheck::kTrap; },
      [](Spec& s) { s.device_timeout_ms.value = 31000; },
      [](Spec& s) { s.host_timeout_ms.value = 31000; },
      [](Spec& s) { s.ablation.value["exit_barrier"] = true; },
      [](Spec& s) { s.ablation.value["union_buffers"] = true; },
  };
  const Spec base = parsed(kMinimal);
  std::set<std::string> digests = {digest(base)};
  for (const Change& change : changes) {
    Spec changed = base;
    change(changed);
    EXPECT_TRUE(digests.insert(digest(changed)).second) << "change " << &change - changes;
  }
}

TEST(ResolvedValues, NameTheFieldThatDiffers) {
  const auto a = resolved_values(parsed(kMinimal));
  const auto b =
      resolved_values(parsed(kMinimal + std::string("receive: {expert_alignment: 8}\n")));
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_EQ(a[i].second != b[i].second, a[i].first == "receive.expert_alignment") << a[i].first;
  }
}

}  // namespace
}  // namespace afdep::spec
