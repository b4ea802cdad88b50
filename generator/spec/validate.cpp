#include "generator/spec/validate.h"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

#include "generator/spec/keys.h"
#include "generator/spec/names.h"
#include "generator/spec/rules.h"

namespace afdep::spec {
namespace {

using enum ErrorCode;

void require(const RuleContext& context, ErrorCode code, std::string_view path, bool there,
             std::string note) {
  if (there || !context.good(path)) return;
  context.report(code, path, fmt::format("{} is missing", path), std::move(note));
}

void check_required(const RuleContext& context) {
  const Spec& spec = context.spec;
  require(context, kSchemaVersion, "schema_version", spec.schema_version.given,
          "write schema_version: 1");
  require(context, kSpecName, "name", spec.name.given,
          "write name: and 1 to 48 lower-case letters, digits and hyphens");
  if (context.good("model.preset")) {
    const auto number = [&](ErrorCode code, std::string_view path, const Field<int>& field) {
      // A preset's number has the place of the preset.
      require(context, code, path, field.given || field.place.line > 0,
              "give it, or a model.preset that has it");
    };
    number(kHiddenSize, "model.hidden_size", spec.model.hidden_size);
    number(kNumExperts, "model.num_experts", spec.model.num_experts);
    number(kTopK, "model.top_k", spec.model.top_k);
  }
  require(context, kTokens, "capacity.tokens_per_rank", spec.capacity.tokens_per_rank.given,
          "give the most tokens that one attention rank sends in one exchange");
}

void check_top_k(const RuleContext& context) {
  const Model& model = context.spec.model;
  if (!context.good("model.top_k", "model.num_experts") || model.num_experts.value == 0) return;
  if (model.top_k.value <= model.num_experts.value) return;
  context.report(kTopK, "model.top_k",
                 fmt::format("model.top_k = {} exceeds model.num_experts = {}", model.top_k.value,
                             model.num_experts.value),
                 fmt::format("use 1 to {}", std::min(kMaxTopK, model.num_experts.value)));
}

void check_buckets(const RuleContext& context) {
  const Capacity& capacity = context.spec.capacity;
  if (!capacity.buckets.given || !context.good("capacity.buckets")) return;
  const std::vector<int>& buckets = capacity.buckets.value;
  if (buckets.empty()) {
    context.report(kBuckets, "capacity.buckets", "capacity.buckets is an empty list",
                   "leave the key out for one bucket of tokens_per_rank");
  }
  if (buckets.size() > static_cast<std::size_t>(kMaxBuckets)) {
    context.report(
        kBuckets, "capacity.buckets",
        fmt::format("capacity.buckets has {} buckets, more than {}", buckets.size(), kMaxBuckets),
        "each bucket is a set of kernels: keep the ones that the batch sizes need");
  }
  const bool capacity_known =
      capacity.tokens_per_rank.given && context.good("capacity.tokens_per_rank");
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const std::string path = fmt::format("capacity.buckets[{}]", i);
    if (i > 0 && buckets[i] <= buckets[i - 1]) {
      context.report(kBuckets, path,
                     fmt::format("{} = {} is not above capacity.buckets[{}] = {}", path, buckets[i],
                                 i - 1, buckets[i - 1]),
                     "list the buckets in increasing order, each once");
    }
    if (capacity_known && buckets[i] > capacity.tokens_per_rank.value) {
      context.report(kTokens, path,
                     fmt::format("{} = {} exceeds capacity.tokens_per_rank = {}", path, buckets[i],
                                 capacity.tokens_per_rank.value),
                     fmt::format("raise tokens_per_rank to {} or remove the bucket", buckets[i]));
    }
  }
}

void check_bucket_protocols(const RuleContext& context) {
  const Spec& spec = context.spec;
  if (!context.good("kernel.protocol", "capacity.buckets", "capacity.tokens_per_rank")) return;
  const std::vector<int>& buckets = spec.capacity.buckets.value;
  if (buckets.empty()) return;
  for (const auto& [bucket, protocol] : spec.bucket_protocol.value) {
    if (std::find(buckets.begin(), buckets.end(), bucket) != buckets.end()) continue;
    context.report(
        kBuckets, fmt::format("kernel.protocol.{}", bucket),
        fmt::format("kernel.protocol names bucket {}, which capacity.buckets does not", bucket),
        fmt::format("the buckets are {}", fmt::join(buckets, ", ")));
  }
}

void check_receive(const RuleContext& context) {
  const Spec& spec = context.spec;
  if (context.good("receive.expert_alignment")) {
    const int alignment = spec.expert_alignment.value;
    if (!std::has_single_bit(static_cast<unsigned>(alignment))) {
      const auto below = static_cast<int>(std::bit_floor(static_cast<unsigned>(alignment)));
      context.report(kAlignment, "receive.expert_alignment",
                     fmt::format("receive.expert_alignment = {} is not a power of two", alignment),
                     fmt::format("use {} or {}", below, below * 2));
    }
    if (context.good("receive.layout") && alignment > 1 &&
        spec.receive_layout.value == ReceiveLayout::kRankMajor) {
      context.report(
          kAlignment, "receive.expert_alignment",
          fmt::format("receive.expert_alignment = {}, but receive.layout = rank_major does "
                      "not group rows by expert",
                      alignment),
          "remove it, or use layout: expert_major");
    }
  }
  if (context.good("receive.padding", "receive.layout") &&
      spec.receive_padding.value == Padding::kZero &&
      spec.receive_layout.value == ReceiveLayout::kRankMajor) {
    context.report(kReceiveLayout, "receive.padding",
                   "receive.padding = zero, but receive.layout = rank_major has no padding rows",
                   "remove it, or use layout: expert_major");
  }
  if (context.good("receive.host_counts", "graph.mode") && spec.host_counts.value &&
      spec.graph_mode.value == GraphMode::kCapture) {
    context.report(
        kHostCounts, "receive.host_counts",
        "receive.host_counts = true waits for the host, which graph.mode = capture forbids",
        "write graph.mode: off, or leave the counts on the device");
  }
}

void check_shared_experts(const RuleContext& context) {
  const Spec& spec = context.spec;
  if (!context.good("shared_experts.count", "shared_experts.mode")) return;
  const int count = spec.shared_experts_count.value;
  const SharedMode mode = spec.shared_experts_mode.value;
  if ((count > 0) == (mode != SharedMode::kNone)) return;
  context.report(
      kSharedExperts, "shared_experts.mode",
      fmt::format("shared_experts.mode = {}, but shared_experts.count = {}", to_name(mode), count),
      count > 0 ? "use local or remote, or count: 0"
                : "use none, or the number of shared experts of the model");
}

void check_arch(const RuleContext& context) {
  if (!context.good("kernel.arch")) return;
  const std::vector<Arch>& arch = context.spec.arch.value;
  if (arch.empty()) {
    context.report(ErrorCode::kArch, "kernel.arch", "kernel.arch is an empty list",
                   fmt::format("list one or more of {}", join(name_texts<Arch>())));
  }
  for (std::size_t i = 1; i < arch.size(); ++i) {
    if (std::find(arch.begin(), arch.begin() + static_cast<std::ptrdiff_t>(i), arch[i]) ==
        arch.begin() + static_cast<std::ptrdiff_t>(i)) {
      continue;
    }
    const std::string path = fmt::format("kernel.arch[{}]", i);
    context.report(ErrorCode::kArch, path,
                   fmt::format("{} = {} is listed a second time", path, to_name(arch[i])),
                   "list each architecture once");
  }
}

}  // namespace

void validate(const Spec& spec, const Origin& origin, Sink& sink) {
  const RuleContext context{spec, origin, sink};
  check_required(context);
  check_top_k(context);
  if (const std::optional<RankCounts> ranks = check_ranks(context)) {
    check_domains(context, *ranks);
    check_placement(context, *ranks);
  }
  check_buckets(context);
  check_bucket_protocols(context);
  check_formats(context);
  check_receive(context);
  check_shared_experts(context);
  check_arch(context);
}

}  // namespace afdep::spec
