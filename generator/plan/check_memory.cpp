#include <fmt/format.h>

#include <algorithm>

#include "generator/plan/check_rules.h"

namespace afdep::plan {
namespace {

constexpr int kMaxRanks = 64;  // of the kernels' argument block
constexpr std::int64_t kRegionAlignment = 256;
constexpr int kVectorBytes = 16;

void check_shape(const ExchangePlan& plan, CheckReport& report) {
  const auto refuse = [&report](const std::string& what) { report.add("shape", what); };
  if (plan.attention_ranks < 1 || plan.ffn_ranks < 1 || plan.ranks() > kMaxRanks) {
    refuse(fmt::format("{} attention and {} ffn ranks; each role needs one, {} are the most in all",
                       plan.attention_ranks, plan.ffn_ranks, kMaxRanks));
  }
  if (plan.ffn_ranks > 0 && (plan.experts < 1 || plan.experts % plan.ffn_ranks != 0)) {
    refuse(fmt::format("{} experts do not divide over {} ffn ranks", plan.experts, plan.ffn_ranks));
  }
  if (plan.top_k < 1 || plan.top_k > plan.experts) {
    refuse(fmt::format("top_k = {} of {} experts", plan.top_k, plan.experts));
  }
  if (plan.hidden < 1 || plan.row_bytes != 2 * plan.hidden || plan.row_bytes % kVectorBytes != 0) {
    refuse(fmt::format("row_bytes = {} for {} BF16 elements, in units of {} bytes", plan.row_bytes,
                       plan.hidden, kVectorBytes));
  }
  if (plan.has_view && plan.ffn_ranks != 1) {
    refuse(fmt::format("has_view with {} ffn ranks: only one rank's reply is a token's output",
                       plan.ffn_ranks));
  }
  if (plan.arches.empty()) refuse("no arch");
  if (plan.buckets.empty()) refuse("no bucket");
  int previous = 0;
  for (const BucketPlan& bucket : plan.buckets) {
    if (bucket.bucket <= previous) {
      refuse(fmt::format("bucket {} after {}: buckets ascend from 1", bucket.bucket, previous));
    }
    previous = bucket.bucket;
  }
  if (previous > plan.capacity) {
    refuse(fmt::format("bucket {} exceeds the capacity of {} tokens", previous, plan.capacity));
  }
}

void check_region(const std::string& where, const Region& region, std::int64_t layout_bytes,
                  CheckReport& report) {
  const auto refuse = [&](const std::string& what) {
    report.add("region", fmt::format("{} \"{}\": {}", where, region.name, what));
  };
  if (region.name.empty()) refuse("has no name");
  if (region.halves < 1 || region.halves > 2 || region.peers < 1 || region.items < 1 ||
      region.item_bytes < 1) {
    refuse(fmt::format("{} halves of {} peers of {} items of {} bytes", region.halves, region.peers,
                       region.items, region.item_bytes));
    return;
  }
  if (region.offset < 0 || region.offset % kRegionAlignment != 0) {
    refuse(fmt::format("offset {} is not a multiple of {}", region.offset, kRegionAlignment));
  }
  if (region.peer_bytes < region.items * region.item_bytes) {
    refuse(fmt::format("peer_bytes = {} is less than {} items of {} bytes", region.peer_bytes,
                       region.items, region.item_bytes));
  }
  if (region.half_bytes < region.peers * region.peer_bytes) {
    refuse(fmt::format("half_bytes = {} is less than {} peers of {} bytes", region.half_bytes,
                       region.peers, region.peer_bytes));
  }
  // Vectors and packets are 16 bytes and naturally aligned; only words may lie closer.
  const std::int64_t unit = region.item_bytes % kVectorBytes == 0 ? kVectorBytes : 4;
  if (region.item_bytes % unit != 0 || region.peer_bytes % unit != 0 ||
      region.half_bytes % unit != 0) {
    refuse(fmt::format("strides of {}, {} and {} bytes are not multiples of {}", region.item_bytes,
                       region.peer_bytes, region.half_bytes, unit));
  }
  if (region.offset + region.bytes() > layout_bytes) {
    refuse(fmt::format("ends at {}, past the {} bytes of the layout",
                       region.offset + region.bytes(), layout_bytes));
  }
}

void check_regions(const std::string& where, const std::vector<Region>& regions,
                   std::int64_t layout_bytes, CheckReport& report) {
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const Region& a = regions[i];
    check_region(where, a, layout_bytes, report);
    for (std::size_t j = i + 1; j < regions.size(); ++j) {
      const Region& b = regions[j];
      if (a.name == b.name) {
        report.add("region", fmt::format("{} \"{}\": the name is given twice", where, a.name));
      }
      if (a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes()) {
        report.add("overlap", fmt::format("{} \"{}\" [{}, {}) and \"{}\" [{}, {}) overlap", where,
                                          a.name, a.offset, a.offset + a.bytes(), b.name, b.offset,
                                          b.offset + b.bytes()));
      }
    }
  }
}

void check_layout(const RoleLayout& layout, Role role, CheckReport& report) {
  const std::string name(to_string(role));
  if (layout.role != role) {
    report.add("shape", fmt::format("the {} layout is marked {}", name, to_string(layout.role)));
  }
  check_regions(name + " window", layout.window, layout.window_bytes, report);
  check_regions(name + " workspace", layout.workspace, layout.workspace_bytes, report);
}

}  // namespace

void check_memory(const ExchangePlan& plan, CheckReport& report) {
  check_shape(plan, report);
  check_layout(plan.attention, Role::kAttention, report);
  check_layout(plan.ffn, Role::kFfn, report);
  const std::int64_t larger = std::max(plan.attention.window_bytes, plan.ffn.window_bytes);
  if (plan.window_bytes != larger) {
    report.add("window", fmt::format("window_bytes = {}, but the larger role needs {}",
                                     plan.window_bytes, larger));
  }
}

}  // namespace afdep::plan
