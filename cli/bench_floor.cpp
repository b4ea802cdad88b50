#include "cli/bench_floor.h"

#include <algorithm>
#include <set>
#include <utility>

namespace afdep::cli {
namespace {

constexpr int kHops = 2;  // dispatch -> receive, reply -> collect
constexpr int kLaunchesARank = 2;
constexpr double kBytesPerUsOfTb = 1e6;  // 1 TB/s in bytes per microsecond

// Of all ranks of a role; they run side by side.
int grid_of(const bundle::Bucket& bucket, bundle::Role role, int ranks) {
  int grid = 0;
  for (const bundle::Kernel& kernel : bucket.kernels) {
    if (kernel.role == role) grid = std::max(grid, kernel.grid);
  }
  return grid * ranks;
}

}  // namespace

plan::Floor loopback_floor(const bundle::Manifest& manifest, const verify::ExchangeCase& exchange,
                           const plan::MachineRates& rates, bool programmatic) {
  double tokens = 0;
  for (const int count : exchange.tokens()) tokens += count;
  double assignments = 0;  // rows that workers hold
  double sent = 0;         // rows that cross from a source to a worker, and back
  for (const verify::WorkerOutput& received : exchange.received) {
    std::set<std::pair<int, int>> crossing;
    for (const verify::ReceivedRow& row : received.rows) crossing.emplace(row.source, row.token);
    sent += static_cast<double>(crossing.size());
    assignments += static_cast<double>(received.rows.size());
  }
  // Read and written. Source: x and what is sent, what comes back and the output. Worker: what came
  // and the rows, the rows and what goes back.
  const double source_bytes = manifest.row_bytes * 2 * (tokens + sent);
  const double worker_bytes = manifest.row_bytes * 2 * (sent + assignments);

  const bundle::Bucket& bucket = *manifest.find_bucket(exchange.bucket);
  const int source_ctas = grid_of(bucket, bundle::Role::kAttention, manifest.attention_ranks);
  const int worker_ctas = grid_of(bucket, bundle::Role::kFfn, manifest.ffn_ranks);
  const auto time = [&](double bytes, int ctas) {
    if (bytes == 0) return 0.0;
    const int used = std::min(ctas, rates.sms);
    return bytes / (plan::copy_rate_tb_per_s(rates.register_copy, used) * kBytesPerUsOfTb);
  };
  plan::Floor floor;
  floor.launch_us =
      kLaunchesARank * (programmatic ? rates.programmatic_gap_us : rates.graph_node_gap_us);
  floor.hop_us = kHops * rates.flag_hop_us;
  floor.bytes_us = std::max({time(source_bytes, source_ctas), time(worker_bytes, worker_ctas),
                             time(source_bytes + worker_bytes, source_ctas + worker_ctas)});
  return floor;
}

}  // namespace afdep::cli
