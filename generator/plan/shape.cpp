#include "generator/plan/shape.h"

#include <algorithm>

namespace afdep::plan {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxWarps = kMaxThreads / kWarp;

template <typename T>
constexpr T ceil_div(T value, T by) {
  return (value + by - 1) / by;
}

// Relative time of one round of a group: the latency of its loads and stores, and what each further
// packet of a lane adds. Measured on an H200; docs/performance.md, "Choosing a shape".
constexpr double kRoundCost = 1.0;
constexpr double kPacketCost = 0.15;

}  // namespace

PacketShape packet_shape(int row_packets, std::int64_t items, int sms) {
  PacketShape best;
  double best_cost = 0;
  for (const int lane_packets : {1, 2, 4}) {
    const int group_warps = ceil_div(row_packets, kWarp * lane_packets);
    const bool last = lane_packets == 4;
    if (group_warps > kMaxWarps && !last) continue;
    PacketShape shape;
    shape.lane_packets =
        group_warps > kMaxWarps ? ceil_div(row_packets, kWarp * kMaxWarps) : lane_packets;
    shape.group_warps = std::min(group_warps, kMaxWarps);
    const auto per_cta = ceil_div<std::int64_t>(std::max<std::int64_t>(items, 1), sms);
    shape.groups = static_cast<int>(
        std::min<std::int64_t>(kMaxWarps / shape.group_warps, std::max<std::int64_t>(per_cta, 1)));
    shape.grid = static_cast<int>(std::min<std::int64_t>(
        sms, ceil_div<std::int64_t>(std::max<std::int64_t>(items, 1), shape.groups)));
    shape.threads = shape.groups * shape.group_warps * kWarp;
    const auto rounds =
        ceil_div<std::int64_t>(items, static_cast<std::int64_t>(shape.grid) * shape.groups);
    shape.one_round = rounds <= 1;
    const double cost =
        static_cast<double>(rounds) * (kRoundCost + kPacketCost * shape.lane_packets);
    if (best_cost == 0 || cost < best_cost) {
      best = shape;
      best_cost = cost;
    }
  }
  return best;
}

ChunkShape chunk_shape(int row_bytes, std::int64_t rows, int sms, int max_lane_vectors) {
  ChunkShape shape;
  const int row_vectors = row_bytes / 16;
  shape.lane_vectors = std::min(max_lane_vectors, ceil_div(row_vectors, kWarp));
  shape.pieces = ceil_div(row_vectors, kWarp * shape.lane_vectors);
  shape.grid =
      static_cast<int>(std::clamp<std::int64_t>(ceil_div<std::int64_t>(rows, kMaxWarps), 1, sms));
  // About two chunks a warp: a flag costs a fence, a long chunk makes the reader wait.
  const std::int64_t warps = static_cast<std::int64_t>(shape.grid) * kMaxWarps;
  shape.chunk_rows = static_cast<int>(std::clamp<std::int64_t>(ceil_div(rows, 2 * warps), 1, 8));
  return shape;
}

int register_ceiling(int threads) {
  const int registers = kRegistersPerSm / (threads * kBlocksPerSm);
  return std::min(255, registers / kRegisterGranule * kRegisterGranule);
}

std::int64_t rank_table_bytes(int local_experts, std::int64_t own_units, int top_k) {
  const std::int64_t bytes =
      3 * 4 * static_cast<std::int64_t>(local_experts) + own_units * top_k * (4 + 4 + 2);
  return (bytes + 3) / 4 * 4;
}

}  // namespace afdep::plan
