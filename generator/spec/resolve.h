// Values that follow from several keys of a valid spec.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/spec/spec.h"

namespace afdep::spec {

struct Ratio {
  int attention = 0;
  int ffn = 0;
};

// "2A2F" or "11A:1F", each number 1..kMaxRanks without leading zeros.
std::optional<Ratio> parse_ratio(std::string_view text);

// Ranks of each role: as written, or ratio x scale. Precondition: spec::parse accepted the spec.
int attention_ranks(const Spec& spec);
int ffn_ranks(const Spec& spec);

// Rank `rank` of 0..attention+ffn-1 is an FFN rank, by topology.rank_order.
bool is_ffn_rank(const Spec& spec, int rank);

// Replicas in all; `auto` resolved to the fewest that make the experts divide.
int redundant_experts(const Spec& spec);

// dispatch.scale with kByDtype resolved; never kByDtype.
Scale dispatch_scale(const Spec& spec);

// kernel.protocol for one bucket: its own entry, else the one for all.
Protocol bucket_protocol(const Spec& spec, int bucket);

// True if the named ablation is switched on; one that is not given is off.
bool ablated(const Spec& spec, std::string_view name);

}  // namespace afdep::spec
