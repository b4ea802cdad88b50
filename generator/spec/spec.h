// A deployment spec as written: plain fields with their places, nothing derived.
// Source of keys, defaults and rules: docs/spec.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/support/diagnostic.h"

namespace afdep::spec {

// A value and where its key was written. A default has line 0 and given == false; a value from
// model.preset has the place of that key and given == false.
template <typename T>
struct Field {
  T value{};
  Place place;
  bool given = false;

  friend bool operator==(const Field&, const Field&) = default;
};

enum class Roles : std::uint8_t { kDisjoint, kSymmetric };
enum class RankOrder : std::uint8_t { kFfnFirst, kAttentionFirst };
enum class Mixed : std::uint8_t { kUnion, kDirectional, kForbid };
enum class Transport : std::uint8_t { kAuto, kLsa, kGin, kLoopback };
enum class IdDtype : std::uint8_t { kInt32, kInt64 };
enum class DispatchDtype : std::uint8_t {
  kBf16,
  kFp16,
  kFp8E4m3,
  kFp8E5m2,
  kMxfp8E4m3,
  kMxfp8E5m2,
  kMxfp4E2m1,
  kInt8
};
// kByDtype: none for bf16 and fp16, block-128 FP32 for fp8, E8M0 per 32 for mxfp, per token for
// int8.
enum class Scale : std::uint8_t {
  kByDtype,
  kNone,
  kFp32Block128,
  kFp32Token,
  kUe8m0Block128,
  kE8m0Block32
};
enum class Quantize : std::uint8_t { kCaller, kKernel };
enum class ReplyDtype : std::uint8_t { kBf16, kFp16, kFp32, kFp8E4m3 };
enum class AppliedBy : std::uint8_t { kFfn, kSource };
enum class ReceiveLayout : std::uint8_t { kExpertMajor, kRankMajor };
enum class Padding : std::uint8_t { kUnspecified, kZero };
enum class PlacementKind : std::uint8_t { kContiguous, kRoundRobin, kMap };
enum class SharedMode : std::uint8_t { kNone, kLocal, kRemote };
enum class Arch : std::uint8_t { kSm90a, kSm100a };
enum class Protocol : std::uint8_t { kAuto, kFlagInData, kChunked, kBulk };
enum class GraphMode : std::uint8_t { kCapture, kOff };
enum class RouteCheck : std::uint8_t { kReport, kTrap, kOff };
enum class CacheMode : std::uint8_t { kJit, kAot };

// One NVLink domain group: either `count` domains of `attention` + `ffn` ranks each, or one domain
// of listed `ranks`.
struct Domain {
  std::string name;
  int count = 1;
  int attention = 0;
  int ffn = 0;
  std::vector<int> ranks;  // non-empty: the listed form; the three numbers above are then unused

  friend bool operator==(const Domain&, const Domain&) = default;
};

struct Model {
  Field<std::string> preset;  // empty: none
  Field<int> hidden_size;     // elements
  Field<int> num_experts;
  Field<int> top_k;
};

struct TopologySpec {
  Field<std::string> ratio;  // "2A2F" or "11A:1F"; empty: none
  Field<int> scale;
  Field<int> attention_ranks;  // 0: not given
  Field<int> ffn_ranks;        // 0: not given
  Field<Roles> roles;
  Field<RankOrder> rank_order;
  Field<std::vector<Domain>> domains;  // empty: one domain
  Field<Mixed> mixed;
  Field<Transport> transport;
};

struct Capacity {
  Field<int> tokens_per_rank;
  Field<std::vector<int>> buckets;  // resolved default: {tokens_per_rank}
};

struct Placement {
  Field<PlacementKind> kind;
  Field<int> redundant_experts;  // -1: auto
  Field<std::vector<std::vector<int>>> map;
};

// num_sms: one number for both roles, a number per role, or auto (0).
struct NumSms {
  int attention = 0;  // 0: auto
  int ffn = 0;        // 0: auto

  friend bool operator==(const NumSms&, const NumSms&) = default;
};

struct Spec {
  std::string file;  // as named by the caller; diagnostics start with it

  Field<int> schema_version;
  Field<std::string> name;
  Model model;
  TopologySpec topology;
  Capacity capacity;
  Field<IdDtype> id_dtype;  // routing.id_dtype
  Field<DispatchDtype> dispatch_dtype;
  Field<Scale> dispatch_scale;
  Field<Quantize> dispatch_quantize;
  Field<ReplyDtype> reply_dtype;
  Field<int> reply_min_bucket;  // tokens
  Field<bool> reply_allow_lossy;
  Field<AppliedBy> weights_applied_by;
  Field<ReceiveLayout> receive_layout;
  Field<int> expert_alignment;  // rows
  Field<Padding> receive_padding;
  Field<bool> host_counts;
  Placement placement;
  Field<int> shared_experts_count;
  Field<SharedMode> shared_experts_mode;
  Field<std::vector<Arch>> arch;
  Field<NumSms> num_sms;
  Field<Protocol> protocol;                        // for every bucket; kAuto: the planner picks
  Field<std::map<int, Protocol>> bucket_protocol;  // bucket -> protocol, over `protocol`
  Field<std::string> tuned_on;                     // GPU that the keys above were measured on
  Field<int> microbatches;
  Field<GraphMode> graph_mode;
  Field<RouteCheck> route_check;
  Field<bool> stats_cost;
  Field<bool> stats_expert_counts;
  Field<int> device_timeout_ms;
  Field<int> host_timeout_ms;
  Field<std::string> cache_dir;  // empty: XDG cache
  Field<CacheMode> cache_mode;
  Field<std::map<std::string, bool>> ablation;
};

}  // namespace afdep::spec
