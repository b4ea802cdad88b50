#include "generator/plan/trace.h"

#include <algorithm>

#include <fmt/format.h>

#include "afdep/trace_abi.h"
#include "generator/plan/layout.h"
#include "generator/spec/digest.h"
#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

constexpr int kWarp = 32;

int warps_of(const Kernel& kernel) { return kernel.threads / kWarp; }

// Of the exchange's blocks of records, the operation's.
int trace_block(Operation operation) {
  switch (operation) {
    case Operation::kDispatch:
    case Operation::kReceive:
      return 0;
    case Operation::kReply:
    case Operation::kCollect:
    case Operation::kCollectView:
      return 1;
    case Operation::kExpand:
    case Operation::kReduce:
    case Operation::kIdleExpand:
    case Operation::kIdleReduce:
      break;  // epilogues are not recorded
  }
  fail_check("not an operation that is recorded", std::source_location::current());
}

// The largest grid and CTA of a role, in any bucket.
struct Extent {
  int blocks = 0;
  int warps = 0;
};

Extent extent_of(const ExchangePlan& plan, Role role) {
  Extent extent;
  for (const BucketPlan& bucket : plan.buckets) {
    for (const Kernel& kernel : bucket.kernels) {
      if (kernel.role != role) continue;
      extent.blocks = std::max(extent.blocks, kernel.grid);
      extent.warps = std::max(extent.warps, warps_of(kernel));
    }
  }
  return extent;
}

void add_region(RoleLayout& layout, const Extent& extent) {
  constexpr std::int64_t kAlignment = 256;
  Region region;
  region.name = kTraceRegion;
  region.offset = layout.workspace_bytes;
  region.peers = kTraceExchanges * kTraceKernels;
  region.items = std::int64_t{extent.blocks} * extent.warps * kTraceSteps;
  region.item_bytes = sizeof(TraceRecord);
  region.peer_bytes = (region.items * region.item_bytes + kAlignment - 1) / kAlignment * kAlignment;
  region.half_bytes = region.peers * region.peer_bytes;
  region.purpose = fmt::format(
      "when warps passed steps: two kernels each of the last {} exchanges, {} places a warp",
      kTraceExchanges, kTraceSteps);
  layout.workspace_bytes += region.bytes();
  layout.workspace.push_back(std::move(region));
}

}  // namespace

ExchangePlan traced(ExchangePlan plan) {
  AFDEP_CHECK(!plan.traced, "the plan is traced already");
  plan.traced = true;
  plan.spec_digest = spec::variant_digest(plan.spec_digest, "trace");
  for (RoleLayout* const layout : {&plan.attention, &plan.ffn}) {
    const Extent extent = extent_of(plan, layout->role);
    add_region(*layout, extent);
    const Region& region = region_of(*layout, kTraceRegion);
    for (BucketPlan& bucket : plan.buckets) {
      for (Kernel& kernel : bucket.kernels) {
        if (kernel.role != layout->role || is_epilogue(kernel.operation)) continue;
        kernel.structure["trace"] = true;
        kernel.constants.push_back(
            {"kTraceOffset", region.offset + trace_block(kernel.operation) * region.peer_bytes,
             fmt::format("region {} of the workspace", region.name)});
        kernel.constants.push_back({"kTraceExchangeBytes", kTraceKernels * region.peer_bytes,
                                    fmt::format("the last {} are kept", kTraceExchanges)});
        kernel.constants.push_back(
            {"kTraceWarps", extent.warps, "places a block, the same in every kernel of the role"});
      }
    }
  }
  return plan;
}

}  // namespace afdep::plan
