// The one table of spec keys: path, error code and range. Reading, printing, comparing, digests and
// overrides all walk it, so a key that is added here is known everywhere (docs/spec.md says how).
#pragma once

#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "generator/spec/spec.h"

namespace afdep::spec {

struct Key {
  std::string_view path;  // "capacity.buckets": a section and a key, or a key of the top level
  ErrorCode code;         // of a value out of range or not among the names
  // Of an integer, or of each integer of a list.
  int min = 0;
  int max = std::numeric_limits<int>::max();
  bool takes_auto = false;  // "auto" is written for the value kAutoValue
};

inline constexpr int kAutoValue = -1;

// Limits that rules, documentation and tests name.
inline constexpr int kMaxHiddenSize = 65536;
inline constexpr int kMaxExperts = 2048;
inline constexpr int kMaxTopK = 32;
inline constexpr int kMaxRanks = 1024;  // of both roles together
inline constexpr int kMaxTokens = 65536;
inline constexpr int kMaxBuckets = 16;
inline constexpr int kMaxSms = 1024;
inline constexpr std::size_t kMaxGpuName = 96;

// Calls visit(Key, field) for each key in the order of the documentation; S is Spec or const Spec.
// kernel.protocol is one key with two fields: visit(Key, protocol, bucket_protocol).
template <typename S, typename Visitor>
void visit_keys(S& spec, Visitor&& visit) {
  using enum ErrorCode;
  visit(Key{"schema_version", kSchemaVersion, 1, 1}, spec.schema_version);
  visit(Key{"name", kSpecName}, spec.name);
  visit(Key{"model.preset", kPreset}, spec.model.preset);
  visit(Key{"model.hidden_size", kHiddenSize, 1, kMaxHiddenSize}, spec.model.hidden_size);
  visit(Key{"model.num_experts", kNumExperts, 1, kMaxExperts}, spec.model.num_experts);
  visit(Key{"model.top_k", kTopK, 1, kMaxTopK}, spec.model.top_k);
  visit(Key{"topology.ratio", kRatio}, spec.topology.ratio);
  visit(Key{"topology.scale", kRatio, 1, kMaxRanks}, spec.topology.scale);
  visit(Key{"topology.attention_ranks", kRatio, 1, kMaxRanks}, spec.topology.attention_ranks);
  visit(Key{"topology.ffn_ranks", kRatio, 1, kMaxRanks}, spec.topology.ffn_ranks);
  visit(Key{"topology.roles", kSpecForm}, spec.topology.roles);
  visit(Key{"topology.rank_order", kRankOrder}, spec.topology.rank_order);
  visit(Key{"topology.domains", kDomains}, spec.topology.domains);
  visit(Key{"topology.mixed", kMixedRoles}, spec.topology.mixed);
  visit(Key{"topology.transport", kTransport}, spec.topology.transport);
  visit(Key{"capacity.tokens_per_rank", kTokens, 1, kMaxTokens}, spec.capacity.tokens_per_rank);
  visit(Key{"capacity.buckets", kBuckets, 1, kMaxTokens}, spec.capacity.buckets);
  visit(Key{"routing.id_dtype", kIdDtype}, spec.id_dtype);
  visit(Key{"dispatch.dtype", kDtypeScale}, spec.dispatch_dtype);
  visit(Key{"dispatch.scale", kScaleLayout}, spec.dispatch_scale);
  visit(Key{"dispatch.quantize", kQuantize}, spec.dispatch_quantize);
  visit(Key{"reply.dtype", kReplyDtype}, spec.reply_dtype);
  visit(Key{"reply.min_bucket", kReplyMinBucket, 0, kMaxTokens}, spec.reply_min_bucket);
  visit(Key{"reply.allow_lossy", kSpecForm}, spec.reply_allow_lossy);
  visit(Key{"weights.applied_by", kWeights}, spec.weights_applied_by);
  visit(Key{"receive.layout", kReceiveLayout}, spec.receive_layout);
  visit(Key{"receive.expert_alignment", kAlignment, 1, 256}, spec.expert_alignment);
  visit(Key{"receive.padding", kReceiveLayout}, spec.receive_padding);
  visit(Key{"receive.host_counts", kSpecForm}, spec.host_counts);
  visit(Key{"placement.kind", kPlacement}, spec.placement.kind);
  visit(Key{"placement.redundant_experts", kPlacement, 0, kMaxExperts * kMaxRanks, true},
        spec.placement.redundant_experts);
  visit(Key{"placement.map", kPlacement, 0, kMaxExperts - 1}, spec.placement.map);
  visit(Key{"shared_experts.count", kSharedExperts, 0, 16}, spec.shared_experts_count);
  visit(Key{"shared_experts.mode", kSharedExperts}, spec.shared_experts_mode);
  visit(Key{"kernel.arch", kArch}, spec.arch);
  visit(Key{"kernel.num_sms", kLaunch, 1, kMaxSms}, spec.num_sms);
  visit(Key{"kernel.protocol", kLaunch}, spec.protocol, spec.bucket_protocol);
  visit(Key{"kernel.tuned_on", kSpecForm}, spec.tuned_on);
  visit(Key{"pipeline.microbatches", kMicrobatches, 1, 4}, spec.microbatches);
  visit(Key{"graph.mode", kSpecForm}, spec.graph_mode);
  visit(Key{"checks.route", kSpecForm}, spec.route_check);
  visit(Key{"stats.cost", kSpecForm}, spec.stats_cost);
  visit(Key{"stats.expert_counts", kSpecForm}, spec.stats_expert_counts);
  visit(Key{"timeouts.device_ms", kTimeouts, 10, 600000}, spec.device_timeout_ms);
  visit(Key{"timeouts.host_ms", kTimeouts, 10, 600000}, spec.host_timeout_ms);
  visit(Key{"cache.dir", kSpecForm}, spec.cache_dir);
  visit(Key{"cache.mode", kSpecForm}, spec.cache_mode);
  visit(Key{"ablation", kSpecForm}, spec.ablation);
}

// Every key, in the order above.
const std::vector<Key>& all_keys();

// "capacity" of "capacity.buckets"; empty for a key of the top level.
std::string_view section_of(std::string_view path);

// "buckets" of "capacity.buckets".
std::string_view last_of(std::string_view path);

}  // namespace afdep::spec
