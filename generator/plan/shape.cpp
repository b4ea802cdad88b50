#include "generator/plan/shape.h"

#include <algorithm>

namespace afdep::plan {
namespace {

constexpr int kWarp = 32;
constexpr int kMaxWarps = kMaxThreads / kWarp;
constexpr int kMaxPacketWarps =
    14;  // leaves 72 registers a thread: packets in flight need more than rows

template <typename T>
constexpr T ceil_div(T value, T by) {
  return (value + by - 1) / by;
}

// Relative time of one round of a group: the latency of its loads and stores, and what each further
// packet of a lane adds. Measured on an H200; docs/performance.md, "Choosing a shape".
constexpr double kRoundCost = 1.0;
constexpr double kPacketCost = 0.1;

// Of a row that is spread over CTAs, each CTA takes at least so many warps.
constexpr int kSpreadWarps = 4;
// CTAs of no more warps are left as they are when warps are dealt out.
constexpr int kDealtWarps = 6;

}  // namespace

int row_shares(int row_bytes, int run_words) {
  constexpr int kRuns = 3;
  return ceil_div(row_bytes / 4, kRuns * run_words);
}

PacketShape packet_shape(int row_bytes, int run_words, std::int64_t items, int sms) {
  PacketShape shape;
  shape.shares = row_shares(row_bytes, run_words);
  shape.group_warps = std::min(kMaxPacketWarps, ceil_div(shape.shares, kWarp));
  shape.row_warps = shape.group_warps;
  const std::int64_t rows = std::max<std::int64_t>(items, 1);
  const std::int64_t rows_a_cta = ceil_div<std::int64_t>(rows, sms);
  shape.groups =
      static_cast<int>(std::min<std::int64_t>(kMaxPacketWarps / shape.group_warps, rows_a_cta));
  shape.grid =
      static_cast<int>(std::min<std::int64_t>(sms, ceil_div<std::int64_t>(rows, shape.groups)));
  shape.threads = shape.groups * shape.group_warps * kWarp;
  shape.one_round =
      std::int64_t{shape.grid} * shape.groups >= rows && shape.group_warps * kWarp >= shape.shares;
  return shape;
}

PacketShape spread_rows(const PacketShape& shape, std::int64_t items, int ctas) {
  if (shape.groups != 1) return shape;
  const auto row_ctas = std::max(1, static_cast<int>(ctas / std::max<std::int64_t>(items, 1)));
  PacketShape spread = shape;
  spread.group_warps =
      std::max(ceil_div(shape.group_warps, row_ctas), std::min(shape.group_warps, kSpreadWarps));
  spread.row_ctas = ceil_div(shape.group_warps, spread.group_warps);
  spread.row_warps = spread.row_ctas * spread.group_warps;
  spread.grid = shape.grid * spread.row_ctas;
  spread.threads = spread.group_warps * kWarp;
  return spread;
}

PacketShape deal_warps(const PacketShape& shape, std::int64_t items, int sms) {
  const auto warps = static_cast<int>(items * shape.group_warps);
  const int a_cta = std::max(ceil_div(warps, sms), kDealtWarps);
  if (a_cta >= shape.threads / kWarp) return shape;
  PacketShape dealt = shape;
  dealt.grid = ceil_div(warps, a_cta);
  dealt.threads = a_cta * kWarp;
  return dealt;
}

double packet_cost(const PacketShape& shape, int run_words, std::int64_t items) {
  const auto rounds = ceil_div<std::int64_t>(std::max<std::int64_t>(items, 1),
                                             std::int64_t{shape.grid} * shape.groups);
  const auto lots = ceil_div(shape.shares, shape.group_warps * kWarp);
  return static_cast<double>(rounds) * lots * (kRoundCost + kPacketCost * run_words);
}

ChunkShape chunk_shape(int row_bytes, std::int64_t rows, int sms, int max_lane_vectors,
                       int warps_a_cta) {
  ChunkShape shape;
  const int row_vectors = row_bytes / 16;
  shape.lane_vectors = std::min(max_lane_vectors, ceil_div(row_vectors, kWarp));
  shape.pieces = ceil_div(row_vectors, kWarp * shape.lane_vectors);
  shape.grid =
      static_cast<int>(std::clamp<std::int64_t>(ceil_div<std::int64_t>(rows, warps_a_cta), 1, sms));
  // About two chunks a warp: a flag costs a fence, a long chunk makes the reader wait.
  const std::int64_t warps = static_cast<std::int64_t>(shape.grid) * warps_a_cta;
  shape.chunk_rows = static_cast<int>(std::clamp<std::int64_t>(ceil_div(rows, 2 * warps), 1, 8));
  return shape;
}

bool bulk_fits(int row_bytes) { return kMaxSharedBytes >= 3 * std::int64_t{row_bytes}; }

BulkShape bulk_shape(int row_bytes, std::int64_t shared_bytes, int max_warps) {
  const auto rows = static_cast<int>((kMaxSharedBytes - shared_bytes - 1024) / row_bytes);
  BulkShape shape;
  shape.stages = rows >= 4 * 4 ? 4 : rows >= 3 * 2 ? 3 : 2;
  shape.warps = std::clamp(rows / shape.stages, 1, max_warps);
  shape.lead = std::max(1, shape.stages / 2);
  shape.ring_bytes = std::int64_t{shape.warps} * shape.stages * row_bytes;
  return shape;
}

int register_ceiling(int threads, int blocks_per_sm) {
  const int registers = kRegistersPerSm / (threads * blocks_per_sm);
  return std::min(255, registers / kRegisterGranule * kRegisterGranule);
}

std::int64_t rank_table_bytes(int local_experts, std::int64_t own_units, int top_k) {
  const std::int64_t bytes =
      3 * 4 * static_cast<std::int64_t>(local_experts) + own_units * top_k * (4 + 4 + 2);
  return (bytes + 3) / 4 * 4;
}

}  // namespace afdep::plan
