#include "generator/tune/arms.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "generator/generate.h"
#include "generator/spec/names.h"
#include "generator/spec/resolve.h"

namespace afdep::tune {
namespace {

using spec::NumSms;
using spec::Protocol;

// Payload of one source in an exchange, bytes. Packets lose above, raw rows below: each a factor
// of four beyond where they were last seen to win on an H200 (docs/performance.md).
constexpr std::int64_t kMostPacketBytes = std::int64_t{4} << 20;
constexpr std::int64_t kLeastRowBytes = std::int64_t{128} << 10;

Result<std::vector<NumSms>> pairs_of(const spec::Spec& spec, const Space& space) {
  const NumSms given = spec.num_sms.value;
  const std::vector<int> attention =
      given.attention > 0 ? std::vector<int>{given.attention} : space.sms;
  const std::vector<int> ffn = given.ffn > 0 ? std::vector<int>{given.ffn} : space.sms;
  const int sources = attention_ranks(spec);
  const int workers = ffn_ranks(spec);
  std::vector<NumSms> pairs;
  for (const int a : attention) {
    for (const int f : ffn) {
      if (sources * a + workers * f <= space.sm_count) pairs.push_back({a, f});
    }
  }
  if (!pairs.empty()) return pairs;
  const int a = *std::ranges::min_element(attention);
  const int f = *std::ranges::min_element(ffn);
  return Failure(
      ErrorCode::kLaunch,
      fmt::format("{} attention ranks x {} SMs + {} FFN ranks x {} SMs = {} SMs must fit one GPU "
                  "of {}",
                  sources, a, workers, f, sources * a + workers * f, space.sm_count),
      "name smaller numbers with --sms, or tune a spec of fewer ranks");
}

std::vector<Protocol> protocols_of(const spec::Spec& spec, int bucket) {
  const Protocol given = bucket_protocol(spec, bucket);
  if (given != Protocol::kAuto) return {given};
  const std::int64_t payload = std::int64_t{bucket} * spec.model.hidden_size.value * 2;
  std::vector<Protocol> protocols;
  if (payload <= kMostPacketBytes) protocols.push_back(Protocol::kFlagInData);
  if (payload >= kLeastRowBytes) {
    protocols.push_back(Protocol::kChunked);
    protocols.push_back(Protocol::kBulk);
  }
  return protocols;
}

// What makes two variants one arm: all sources and how they are launched.
std::string fingerprint_of(const Generated& generated) {
  std::string text;
  for (const plan::Kernel& kernel : generated.plan.buckets.front().kernels) {
    text += fmt::format("{} {} {}\n", kernel.grid, kernel.threads, kernel.shared_bytes);
  }
  for (const KernelSource& source : generated.sources) text += source.text;
  return text;
}

}  // namespace

std::string name_of(const Variant& variant) {
  return fmt::format("{} {} {}+{}", variant.bucket, to_name(variant.protocol),
                     variant.sms.attention, variant.sms.ffn);
}

spec::Spec spec_of(const spec::Spec& spec, const Variant& variant) {
  spec::Spec one = spec;
  one.capacity.tokens_per_rank.value = variant.bucket;
  one.capacity.buckets.value = {variant.bucket};
  one.capacity.buckets.given = true;
  one.num_sms.value = variant.sms;
  one.num_sms.given = true;
  one.bucket_protocol.value = {{variant.bucket, variant.protocol}};
  one.bucket_protocol.given = true;
  return one;
}

Result<std::vector<BucketArms>> arms_of(const spec::Spec& spec, const Space& space) {
  const Result<std::vector<NumSms>> pairs = pairs_of(spec, space);
  if (!pairs.ok()) return pairs.failure();
  std::vector<int> buckets = spec.capacity.buckets.value;
  if (buckets.empty()) buckets.push_back(spec.capacity.tokens_per_rank.value);
  std::vector<BucketArms> all;
  for (const int bucket : buckets) {
    BucketArms found{.bucket = bucket, .arms = {}};
    std::map<std::string, std::size_t> known;  // fingerprint -> arm
    Diagnostics refused;
    for (const Protocol protocol : protocols_of(spec, bucket)) {
      for (const NumSms& sms : *pairs) {
        const Variant variant{.bucket = bucket, .protocol = protocol, .sms = sms};
        const Result<Generated> generated = generate(spec_of(spec, variant), {.emit_only = true});
        if (!generated.ok()) {  // does not fit an SM, say: another variant may
          refused = generated.diagnostics();
          continue;
        }
        const auto [at, is_new] = known.emplace(fingerprint_of(*generated), found.arms.size());
        if (is_new) found.arms.emplace_back();
        found.arms[at->second].variants.push_back(variant);
      }
    }
    if (found.arms.empty()) return Failure(std::move(refused));
    all.push_back(std::move(found));
  }
  return all;
}

}  // namespace afdep::tune
