#include "generator/plan/floor.h"

#include <algorithm>

#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

constexpr double kBytesPerUsOfTb = 1e6;  // 1 TB/s in bytes per microsecond
constexpr double kBytesPerUsOfGb = 1e3;  // 1 GB/s in bytes per microsecond

// The kernels that every exchange launches on a rank: all of the role's but collect_view, which
// replaces collect.
std::vector<const Kernel*> path_kernels(const BucketPlan& bucket, Role role) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : bucket.kernels) {
    if (kernel.role == role && kernel.operation != Operation::kCollectView)
      found.push_back(&kernel);
  }
  return found;
}

bool releases_next(const Kernel& kernel) {
  return std::ranges::any_of(
      kernel.steps, [](const Step& step) { return step.kind == StepKind::kReleaseNextKernel; });
}

double launch_us(const std::vector<const Kernel*>& kernels, const MachineRates& rates) {
  double total = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    // Exchanges follow each other, so the last kernel is what runs before the first.
    const Kernel& before = *kernels[(i + kernels.size() - 1) % kernels.size()];
    total += releases_next(before) ? rates.programmatic_gap_us : rates.graph_node_gap_us;
  }
  return total;
}

int largest_grid(const std::vector<const Kernel*>& kernels) {
  int grid = 0;
  for (const Kernel* kernel : kernels) grid = std::max(grid, kernel->grid);
  return grid;
}

double memory_us(double bytes, int ctas, Protocol protocol, const MachineRates& rates) {
  if (bytes == 0) return 0;
  const std::vector<CopyRate>& points =
      protocol == Protocol::kBulk ? rates.bulk_copy : rates.register_copy;
  return bytes / (copy_rate_tb_per_s(points, std::min(ctas, rates.sms)) * kBytesPerUsOfTb);
}

struct Paths {
  std::vector<const Kernel*> attention;
  std::vector<const Kernel*> ffn;
};

Floor without_bytes(const BucketPlan& bucket, const Paths& paths, const MachineRates& rates) {
  Floor floor;
  floor.launch_us = std::max(launch_us(paths.attention, rates), launch_us(paths.ffn, rates));
  floor.hop_us = static_cast<double>(bucket.critical_path.size()) * rates.flag_hop_us;
  floor.sync_us =
      static_cast<double>(std::ranges::count(bucket.signals, SignalKind::kBarrier, &Signal::kind)) *
      rates.grid_sync_us;
  return floor;
}

}  // namespace

MachineRates h200_rates() {
  MachineRates rates;
  // Source of all: docs/plan.md, "Floor", measured on one H200. Copies of 16-byte vectors with four
  // in flight per thread, the fastest measured form of a copy through registers at most CTA counts.
  rates.register_copy = {{8, 0.77}, {16, 1.50}, {24, 2.20}, {33, 2.99}, {48, 3.64}, {132, 3.96}};
  // A ring of bulk copies, 12 warps x 4 stages x 4 KiB.
  rates.bulk_copy = {{24, 2.30}, {33, 3.07}, {48, 3.26}, {132, 3.74}};
  return rates;
}

double copy_rate_tb_per_s(const std::vector<CopyRate>& points, int ctas) {
  AFDEP_CHECK(!points.empty(), "a machine without copy rates");
  CopyRate below;  // no CTA copies nothing
  for (const CopyRate& above : points) {
    if (ctas <= above.ctas) {
      const double part =
          static_cast<double>(ctas - below.ctas) / static_cast<double>(above.ctas - below.ctas);
      return below.tb_per_s + part * (above.tb_per_s - below.tb_per_s);
    }
    below = above;
  }
  return below.tb_per_s;
}

Floor floor_of(const ExchangePlan& plan, const BucketPlan& bucket, const MachineRates& rates) {
  const Paths paths{path_kernels(bucket, Role::kAttention), path_kernels(bucket, Role::kFfn)};
  Floor floor = without_bytes(bucket, paths, rates);

  const Traffic& traffic = bucket.traffic;
  const double sources_per_worker =
      static_cast<double>(plan.attention_ranks) / static_cast<double>(plan.ffn_ranks);
  const double attention_memory =
      memory_us(traffic.source_memory_bytes, largest_grid(paths.attention), bucket.protocol, rates);
  const double ffn_memory =
      memory_us(traffic.worker_memory_bytes, largest_grid(paths.ffn), bucket.protocol, rates);
  // A link is as fast in as out, and a dispatch ends before its reply begins: the two phases add
  // up.
  const double link = rates.link_gb_per_s * kBytesPerUsOfGb;
  const double attention_wire =
      (traffic.dispatch_wire_bytes + traffic.reply_wire_bytes / sources_per_worker) / link;
  const double ffn_wire =
      (traffic.dispatch_wire_bytes * sources_per_worker + traffic.reply_wire_bytes) / link;
  // The roles' work overlaps: rows are expanded while others arrive, replies summed while others
  // are sent. Not so where epilogues are kernels of their own.
  floor.bytes_us = plan.ablation.separate_epilogues
                       ? std::max({attention_memory + ffn_memory, attention_wire, ffn_wire})
                       : std::max({attention_memory, attention_wire, ffn_memory, ffn_wire});
  return floor;
}

Floor loopback_floor_of(const ExchangePlan& plan, const BucketPlan& bucket,
                        const MachineRates& rates) {
  const Paths paths{path_kernels(bucket, Role::kAttention), path_kernels(bucket, Role::kFfn)};
  Floor floor = without_bytes(bucket, paths, rates);

  const Traffic& traffic = bucket.traffic;
  const int attention_grid = largest_grid(paths.attention);
  const int ffn_grid = largest_grid(paths.ffn);
  const double all_bytes = plan.attention_ranks * traffic.source_memory_bytes +
                           plan.ffn_ranks * traffic.worker_memory_bytes;
  const int all_ctas = plan.attention_ranks * attention_grid + plan.ffn_ranks * ffn_grid;
  floor.bytes_us =
      std::max({memory_us(traffic.source_memory_bytes, attention_grid, bucket.protocol, rates),
                memory_us(traffic.worker_memory_bytes, ffn_grid, bucket.protocol, rates),
                memory_us(all_bytes, all_ctas, bucket.protocol, rates)});
  return floor;
}

}  // namespace afdep::plan
