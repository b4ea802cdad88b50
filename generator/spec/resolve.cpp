#include "generator/spec/resolve.h"

#include <charconv>

#include "generator/spec/keys.h"
#include "runtime/support/check.h"

namespace afdep::spec {
namespace {

// Takes a number 1..kMaxRanks off the front of `text`.
std::optional<int> take_ranks(std::string_view& text) {
  int value = 0;
  if (text.empty() || text.front() < '1' || text.front() > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value > kMaxRanks) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

Ratio ratio_of(const Spec& spec) {
  const std::optional<Ratio> ratio = parse_ratio(spec.topology.ratio.value);
  AFDEP_CHECK(ratio, "a valid spec without ranks or a ratio");
  return *ratio;
}

}  // namespace

std::optional<Ratio> parse_ratio(std::string_view text) {
  const std::optional<int> attention = take_ranks(text);
  if (!attention || !take(text, 'A')) return std::nullopt;
  take(text, ':');
  const std::optional<int> ffn = take_ranks(text);
  if (!ffn || !take(text, 'F') || !text.empty()) return std::nullopt;
  return Ratio{*attention, *ffn};
}

int attention_ranks(const Spec& spec) {
  if (spec.topology.attention_ranks.value > 0) return spec.topology.attention_ranks.value;
  return ratio_of(spec).attention * spec.topology.scale.value;
}

int ffn_ranks(const Spec& spec) {
  if (spec.topology.ffn_ranks.value > 0) return spec.topology.ffn_ranks.value;
  return ratio_of(spec).ffn * spec.topology.scale.value;
}

bool is_ffn_rank(const Spec& spec, int rank) {
  if (spec.topology.rank_order.value == RankOrder::kFfnFirst) return rank < ffn_ranks(spec);
  return rank >= attention_ranks(spec);
}

int redundant_experts(const Spec& spec) {
  if (spec.placement.redundant_experts.value != kAutoValue) {
    return spec.placement.redundant_experts.value;
  }
  const int workers = ffn_ranks(spec);
  return (workers - spec.model.num_experts.value % workers) % workers;
}

Scale dispatch_scale(const Spec& spec) {
  if (spec.dispatch_scale.value != Scale::kByDtype) return spec.dispatch_scale.value;
  switch (spec.dispatch_dtype.value) {
    case DispatchDtype::kBf16:
    case DispatchDtype::kFp16:
      return Scale::kNone;
    case DispatchDtype::kFp8E4m3:
    case DispatchDtype::kFp8E5m2:
      return Scale::kFp32Block128;
    case DispatchDtype::kMxfp8E4m3:
    case DispatchDtype::kMxfp8E5m2:
    case DispatchDtype::kMxfp4E2m1:
      return Scale::kE8m0Block32;
    case DispatchDtype::kInt8:
      return Scale::kFp32Token;
  }
  AFDEP_CHECK(false, "dispatch dtype out of its enumeration");
  return Scale::kNone;
}

Protocol bucket_protocol(const Spec& spec, int bucket) {
  const auto own = spec.bucket_protocol.value.find(bucket);
  return own == spec.bucket_protocol.value.end() ? spec.protocol.value : own->second;
}

bool ablated(const Spec& spec, std::string_view name) {
  const auto found = spec.ablation.value.find(std::string(name));
  return found != spec.ablation.value.end() && found->second;
}

}  // namespace afdep::spec
