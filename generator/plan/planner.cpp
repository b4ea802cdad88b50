#include "generator/plan/planner.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "generator/plan/critical_path.h"
#include "generator/plan/floor.h"
#include "generator/plan/kernels.h"
#include "generator/plan/layout.h"
#include "generator/plan/shape.h"
#include "generator/spec/digest.h"
#include "generator/spec/resolve.h"
#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

// Up to this much payload of one source, packets win: 4/3 of the bytes, but no fence and no flag on
// the path. Few rows do not fill the rings of bulk kernels, so then packets win for longer.
// Measured on an H200; docs/performance.md, "Choosing a protocol".
constexpr std::int64_t kFlagInDataBytes = 896 << 10;
constexpr std::int64_t kFewRowsBytes = 1536 << 10;
constexpr int kFewRows = 112;

// Of request.bucket, as the spec forces it or by its bytes. Above the limit rows move by bulk
// copies unless shared memory does not hold their rings.
Protocol choose_protocol(const spec::Spec& spec, const ExchangePlan& plan,
                         const BucketRequest& request) {
  switch (spec::bucket_protocol(spec, request.bucket)) {
    case spec::Protocol::kFlagInData:
      return Protocol::kFlagInData;
    case spec::Protocol::kChunked:
      return Protocol::kChunked;
    case spec::Protocol::kBulk:
      return Protocol::kBulk;
    case spec::Protocol::kAuto:
      break;
  }
  const std::int64_t most = request.bucket <= kFewRows ? kFewRowsBytes : kFlagInDataBytes;
  if (std::int64_t{request.bucket} * plan.row_bytes <= most) {
    return Protocol::kFlagInData;
  }
  return bulk_serves(plan, request) ? Protocol::kBulk : Protocol::kChunked;
}

RouteCheck route_check(spec::RouteCheck check) {
  switch (check) {
    case spec::RouteCheck::kReport:
      return RouteCheck::kReport;
    case spec::RouteCheck::kTrap:
      return RouteCheck::kTrap;
    case spec::RouteCheck::kOff:
      return RouteCheck::kOff;
  }
  return RouteCheck::kReport;
}

Ablation ablation_of(const spec::Spec& spec) {
  return {.entry_barrier = spec::ablated(spec, "entry_barrier"),
          .exit_barrier = spec::ablated(spec, "exit_barrier"),
          .dummy_experts = spec::ablated(spec, "dummy_experts"),
          .union_buffers = spec::ablated(spec, "union_buffers"),
          .separate_epilogues = spec::ablated(spec, "separate_epilogues")};
}

// Bytes under uniform routing: a token misses a worker with the chance that all its choices lie
// elsewhere.
Traffic traffic_of(const ExchangePlan& plan, const BucketRequest& request) {
  double miss = 1;
  for (int i = 0; i < plan.top_k; ++i) {
    const int elsewhere = plan.experts - plan.local_experts() - i;
    miss *= elsewhere > 0 ? static_cast<double>(elsewhere) / (plan.experts - i) : 0;
  }
  const double hits = 1 - miss;  // expected rows of a token at one worker's inbox
  const double row = plan.row_bytes;
  const int run = packet_run(plan, request);
  const bool packets = request.protocol == Protocol::kFlagInData;
  const double wire_row = packets ? 16.0 * row_shares(plan.row_bytes, run) * run : row;
  // What every worker learns of a token's routes: bulk adds its slices' counts.
  const double table =
      request.protocol == Protocol::kBulk
          ? 16.0 * choice_packets(plan.top_k) + 16.0 * count_packets(plan.local_experts()) *
                                                    bulk_slices(plan, request) / request.bucket
          : table_entry_bytes(plan.top_k);
  const double tokens = request.bucket;
  const double sources = plan.attention_ranks;
  const double workers = plan.ffn_ranks;
  const double expanded =
      sources * tokens * plan.top_k / workers;  // rows of one worker's receive tensor
  Traffic traffic;
  traffic.dispatch_wire_bytes = tokens * workers * (hits * wire_row + table);
  traffic.reply_wire_bytes = sources * tokens * hits * wire_row;
  // Source: x and what is sent, what comes back and the output. Worker: what came and the rows, the
  // rows and what goes back.
  traffic.source_memory_bytes =
      tokens * (row + workers * (hits * wire_row + table) + workers * hits * wire_row + row);
  traffic.worker_memory_bytes = sources * tokens * (hits * wire_row + table) + expanded * row +
                                expanded * row + sources * tokens * hits * wire_row;
  return traffic;
}

}  // namespace

Result<ExchangePlan> plan(const spec::Spec& spec, const topology::Topology& topology) {
  ExchangePlan plan;
  plan.name = spec.name.value;
  plan.spec_digest = spec::digest(spec);
  plan.attention_ranks = topology.attention_ranks;
  plan.ffn_ranks = topology.ffn_ranks;
  plan.ffn_first = topology.ffn_first;
  plan.hidden = spec.model.hidden_size.value;
  plan.experts = spec.model.num_experts.value;
  plan.top_k = spec.model.top_k.value;
  plan.row_bytes = plan.hidden * 2;
  plan.expert_alignment = spec.expert_alignment.value;
  plan.zero_padding =
      spec.receive_padding.value == spec::Padding::kZero && plan.expert_alignment > 1;
  plan.host_counts = spec.host_counts.value;
  plan.capture = spec.graph_mode.value == spec::GraphMode::kCapture;
  plan.has_view = plan.ffn_ranks == 1;
  plan.id_type = spec.id_dtype.value == spec::IdDtype::kInt32 ? IdType::kInt32 : IdType::kInt64;
  plan.route_check = route_check(spec.route_check.value);
  plan.ablation = ablation_of(spec);
  for (const spec::Arch arch : spec.arch.value) {
    plan.arches.push_back(arch == spec::Arch::kSm90a ? Arch::kSm90a : Arch::kSm100a);
  }
  plan.device_timeout_ms = spec.device_timeout_ms.value;
  plan.host_timeout_ms = spec.host_timeout_ms.value;

  std::vector<int> buckets = spec.capacity.buckets.value;
  if (buckets.empty()) buckets.push_back(spec.capacity.tokens_per_rank.value);
  plan.capacity = buckets.back();

  const spec::NumSms sms = spec.num_sms.value;
  InboxSizes sizes;
  sizes.capacity = plan.capacity;
  std::vector<BucketRequest> requests;
  for (const int bucket : buckets) {
    BucketRequest request;
    request.bucket = bucket;
    request.attention_sms = sms.attention > 0 ? sms.attention : kDefaultSms;
    request.ffn_sms = sms.ffn > 0 ? sms.ffn : kDefaultSms;
    sizes.attention_ctas = request.attention_sms;
    sizes.ffn_ctas = request.ffn_sms;
    request.protocol = choose_protocol(spec, plan, request);
    if (request.protocol != Protocol::kBulk) {
      sizes.table_bucket = std::max(sizes.table_bucket, bucket);
    }
    if (request.protocol == Protocol::kFlagInData) {
      sizes.flag_in_data_bucket = std::max(sizes.flag_in_data_bucket, bucket);
    } else {
      sizes.chunked_bucket = std::max(sizes.chunked_bucket, bucket);
      sizes.dispatch_chunks = std::max(sizes.dispatch_chunks, dispatch_chunks(plan, request));
      sizes.reply_chunks = std::max(sizes.reply_chunks, reply_chunks(plan, request));
    }
    if (request.protocol == Protocol::kBulk) {
      sizes.bulk_bucket = std::max(sizes.bulk_bucket, bucket);
      sizes.bulk_slices = std::max(sizes.bulk_slices, bulk_slices(plan, request));
    }
    requests.push_back(request);
  }
  plan.attention = attention_layout(plan, sizes);
  plan.ffn = ffn_layout(plan, sizes);
  plan.window_bytes = std::max(plan.attention.window_bytes, plan.ffn.window_bytes);

  Diagnostics failures;
  for (const BucketRequest& request : requests) {
    Result<std::vector<Kernel>> kernels = kernels_of(plan, request);
    if (!kernels.ok()) {
      failures.insert(failures.end(), kernels.diagnostics().begin(), kernels.diagnostics().end());
      continue;
    }
    BucketPlan bucket;
    bucket.bucket = request.bucket;
    bucket.protocol = request.protocol;
    bucket.kernels = std::move(*kernels);
    bucket.signals = signals_of(plan, request.protocol);
    bucket.critical_path = longest_chain(plan, bucket, /*with_rows=*/true);
    bucket.traffic = traffic_of(plan, request);
    bucket.floor = floor_of(plan, bucket, h200_rates());
    plan.buckets.push_back(std::move(bucket));
  }
  if (!failures.empty()) {
    for (Diagnostic& failure : failures) failure.place = spec.capacity.buckets.place;
    return Failure(std::move(failures));
  }
  return plan;
}

}  // namespace afdep::plan
