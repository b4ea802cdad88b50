#include "generator/plan/sizing.h"

#include <algorithm>

#include "generator/plan/check.h"

namespace afdep::plan {
namespace {

constexpr std::int64_t kRegionAlignment = 256;

bool holds_replies(const ExchangePlan& plan, const Region& region) {
  return std::ranges::any_of(plan.buckets, [&](const BucketPlan& bucket) {
    return std::ranges::any_of(bucket.signals, [&](const Signal& signal) {
      return signal.to == Role::kAttention && signal.data_region == region.name;
    });
  });
}

// Done words lie in one block, whoever writes them.
bool holds_done_words(const ExchangePlan& plan, const Region& region) {
  return std::ranges::any_of(plan.buckets, [&](const BucketPlan& bucket) {
    return std::ranges::any_of(bucket.signals, [&](const Signal& signal) {
      return signal.kind == SignalKind::kDoneWord && signal.flag_region == region.name;
    });
  });
}

std::int64_t union_bytes(const ExchangePlan& plan, const RoleLayout& layout, int writers) {
  std::int64_t total = 0;
  for (const Region& region : layout.window) {
    int blocks = region.peers == writers ? plan.ranks() : region.peers;
    if (layout.role == Role::kAttention && holds_replies(plan, region)) {
      blocks = std::min(plan.ranks(), plan.top_k);
    } else if (region.name == kViewRegion || holds_done_words(plan, region)) {
      blocks = region.peers;  // the rank itself writes the view
    }
    const std::int64_t bytes = region.halves * blocks * region.peer_bytes;
    total += (bytes + kRegionAlignment - 1) / kRegionAlignment * kRegionAlignment;
  }
  return total;
}

}  // namespace

std::int64_t union_window_bytes(const ExchangePlan& plan) {
  return std::max(union_bytes(plan, plan.attention, plan.ffn_ranks),
                  union_bytes(plan, plan.ffn, plan.attention_ranks));
}

}  // namespace afdep::plan
