#include "generator/spec/digest.h"

#include <map>

#include <fmt/format.h>
#include <xxhash.h>

#include "generator/spec/compare.h"
#include "generator/spec/keys.h"
#include "generator/spec/resolve.h"
#include "generator/spec/value_text.h"

namespace afdep::spec {

std::vector<std::pair<std::string, std::string>> resolved_values(const Spec& spec) {
  std::map<int, Protocol> protocols;
  for (const int bucket : spec.capacity.buckets.value) {
    protocols[bucket] = bucket_protocol(spec, bucket);
  }
  const std::map<std::string, std::string, std::less<>> resolved = {
      {"topology.attention_ranks", value_text(attention_ranks(spec))},
      {"topology.ffn_ranks", value_text(ffn_ranks(spec))},
      {"dispatch.scale", value_text(dispatch_scale(spec))},
      {"placement.redundant_experts", value_text(redundant_experts(spec))},
      {"kernel.protocol", value_text(protocols)},
  };
  std::vector<std::pair<std::string, std::string>> values;
  for (auto& [path, text] : written_values(spec)) {
    const std::string_view section = section_of(path);
    // Only labels, or inputs of values that stand here already.
    if (path == "name" || section == "cache" || section == "stats" || path == "model.preset" ||
        path == "topology.ratio" || path == "topology.scale" || path == "kernel.protocol{}" ||
        path == "kernel.tuned_on") {
      continue;
    }
    const auto found = resolved.find(path);
    values.emplace_back(path, found == resolved.end() ? text : found->second);
  }
  return values;
}

namespace {

std::string hash(std::string_view text) {
  XXH128_canonical_t bytes;
  XXH128_canonicalFromHash(&bytes, XXH3_128bits(text.data(), text.size()));
  std::string hex;
  for (const unsigned char byte : bytes.digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace

std::string digest(const Spec& spec) {
  std::string text;
  for (const auto& [path, value] : resolved_values(spec)) {
    text += fmt::format("{}: {}\n", path, value);
  }
  return hash(text);
}

std::string variant_digest(std::string_view digest, std::string_view variant) {
  return hash(fmt::format("{} {}\n", digest, variant));
}

}  // namespace afdep::spec
