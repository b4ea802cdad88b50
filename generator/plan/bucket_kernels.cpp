#include "generator/plan/bucket_kernels.h"

#include <algorithm>

#include <fmt/format.h>

namespace afdep::plan {

Kernel BucketKernels::start(Role role, Operation operation) const {
  Kernel kernel;
  kernel.role = role;
  kernel.operation = operation;
  kernel.protocol = request_.protocol;
  kernel.bucket = request_.bucket;
  std::string name = plan_.name;
  std::replace(name.begin(), name.end(), '-', '_');
  kernel.symbol = fmt::format("afdep_{}_{}_b{}", name, to_string(operation), request_.bucket);
  // Bulk replies are raw rows under chunk flags too, and are collected alike; a token's only row is
  // sent back as it is.
  const bool collects = operation == Operation::kCollect || operation == Operation::kCollectView ||
                        operation == Operation::kReduce || operation == Operation::kExpand;
  const bool copies = operation == Operation::kReply && plan_.top_k == 1;
  const Protocol kind = bulk() && (collects || copies) ? Protocol::kChunked : request_.protocol;
  kernel.template_path = fmt::format("kernels/{}_{}.cu.in", to_string(operation), to_string(kind));
  kernel.blocks_per_sm = kBlocksPerSm;
  kernel.steps = {step(StepKind::kAwaitPreviousKernel, "wait for the kernel before this one"),
                  step(StepKind::kReleaseNextKernel, "let the next kernel become resident")};
  return kernel;
}

void BucketKernels::set_threads(Kernel& kernel, int threads, Constants& constants) const {
  kernel.threads = threads;
  kernel.blocks_per_sm = bulk() ? 1 : kBlocksPerSm;
  const bool bulk_reply = bulk() && kernel.operation == Operation::kReply;
  const int least_bound = bulk_reply             ? kBulkReplyBoundThreads
                          : bulk()               ? kBulkBoundThreads
                          : !packets()           ? 0
                          : leaves_room(threads) ? kSmallPacketBoundThreads
                                                 : kPacketBoundThreads;
  const int bound = std::max(threads, least_bound);
  kernel.register_ceiling = register_ceiling(bound, kernel.blocks_per_sm);
  // These step by them.
  const bool counts_threads = (kernel.operation == Operation::kReceive && !warp_ranked()) ||
                              kernel.operation == Operation::kReply ||
                              (kernel.operation == Operation::kDispatch && bulk());
  if (counts_threads) {
    constants.add("kThreads", threads, fmt::format("{} warps", threads / 32));
  }
  constants
      .add("kBoundThreads", bound,
           bound == threads
               ? fmt::format("{} warps", threads / 32)
               : fmt::format("launched with {}; one bound keeps a bundle's kernels alike", threads))
      .add("kBlocksPerSm", kernel.blocks_per_sm,
           fmt::format("leaves {} registers a thread", kernel.register_ceiling));
}

void BucketKernels::set_packet_shape(Kernel& kernel, const PacketShape& shape, bool with_groups,
                                     Constants& constants) const {
  kernel.grid = shape.grid;
  set_threads(kernel, shape.threads, constants);
  const std::string whose = shape.row_ctas > 1 ? "a row's part of one CTA" : "a row";
  constants.add("kGroupThreads", shape.group_warps * 32,
                fmt::format("{} warps take {}", shape.group_warps, whose));
  if (with_groups) constants.add("kGroups", shape.groups, "rows in flight in a CTA");
}

PacketShape BucketKernels::source_shape() const {
  const PacketShape shape = packets_for(request_.bucket, request_.attention_sms);
  if (!shape.one_round) return shape;
  return spread_rows(shape, request_.bucket, std::min(kSpreadCtas, request_.attention_sms));
}

PacketShape BucketKernels::worker_shape() const {
  const PacketShape shape = packets_for(units(), request_.ffn_sms);
  if (warp_ranked()) {
    return spread_rows(shape, units(), std::min(kSpreadCtas, request_.ffn_sms));
  }
  return early_look() ? deal_warps(shape, units(), request_.ffn_sms) : shape;
}

void BucketKernels::set_dealt_shape(Kernel& kernel, const PacketShape& shape,
                                    Constants& constants) const {
  kernel.grid = shape.grid;
  set_threads(kernel, shape.threads, constants);
  constants.add("kWarps", shape.threads / 32, "a CTA")
      .add("kRowWarps", shape.row_warps, "take a row, in one CTA or in several");
}

bool BucketKernels::early_look() const {
  // Not before the exit barrier, and not where expand takes the rows.
  return packets() && !plan_.ablation.exit_barrier && !plan_.ablation.separate_epilogues &&
         plan_.top_k <= kMaxEarlyTopK && packets_for(units(), request_.ffn_sms).one_round;
}

bool BucketKernels::leaves_room(int threads) const {
  return early_look() && threads <= kSmallPacketThreads;
}

int BucketKernels::rows_in_flight(int registers) const {
  // With short runs 3 registers a row; with long ones 12, beside 24 of sums.
  const int most = packet_run(plan_, request_) == 1 ? 8 : registers < 80 ? 3 : 4;
  return std::min(plan_.top_k, most);
}

void BucketKernels::add_lots(const PacketShape& shape, Constants& constants) const {
  const int lots = ceil_div(shape.shares, shape.group_warps * 32);
  constants.add("kRowLots", lots,
                lots == 1 ? "a group takes a row" : "a group takes a part of a row");
}

bool BucketKernels::warp_ranked() const {
  return early_look() && plan_.expert_alignment == 1 &&
         units() * (table_entry_bytes(plan_.top_k) / 16) <= kWarpTablePackets;
}

void BucketKernels::add_units(Constants& constants) const {
  if (!early_look()) {
    constants.add("kUnitRowsOffset", region_of(plan_.ffn, "unit_rows").offset,
                  "region unit_rows of the workspace");
    if (reply_by_slot()) {
      constants.add("kUnitSlotsOffset", region_of(plan_.ffn, "unit_slots").offset,
                    "region unit_slots of the workspace");
    }
    return;
  }
  const Region& units = region_of(plan_.ffn, "unit_packets");
  constants.add("kUnitPacketsOffset", units.offset, "region unit_packets of the workspace")
      .add("kUnitPackets", units.item_bytes / 16, "of a unit: its rows, and its reply slot")
      .add("kUnitBytes", units.item_bytes, "16 a packet");
}

void BucketKernels::set_chunk_shape(Kernel& kernel, int grid, int threads,
                                    Constants& constants) const {
  kernel.grid = grid;
  set_threads(kernel, threads, constants);
}

void BucketKernels::add_lane_pieces(const ChunkShape& shape, Constants& constants) const {
  constants.add("kRowVectors", plan_.row_bytes / 16, "16-byte vectors of a row")
      .add("kLaneVectors", shape.lane_vectors, "of one row, in flight together");
}

void BucketKernels::add_row_packets(bool with_shares, Constants& constants) const {
  const int run = packet_run(plan_, request_);
  constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word")
      .add("kRunWords", run,
           run == 1 ? "a lane's part of a row is 3 words: one packet"
                    : "a lane's part of a row is 3 vectors of 4 words: four packets");
  if (with_shares)
    constants.add("kRowShares", row_shares(plan_.row_bytes, run),
                  fmt::format("parts of {} bytes", 12 * run));
}

namespace {

// "region table of every worker's window", seen from `kernel`.
std::string where(const Kernel& kernel, const RoleLayout& layout, const Region& region) {
  const bool in_window =
      std::find(layout.window.begin(), layout.window.end(), region) != layout.window.end();
  if (!in_window) return fmt::format("region {} of the workspace", region.name);
  if (kernel.role == layout.role)
    return fmt::format("region {} of this rank's window", region.name);
  return fmt::format("region {} of {} window", region.name,
                     layout.role == Role::kFfn ? "every worker's" : "every source's");
}

}  // namespace

void BucketKernels::add_inbox(const Kernel& kernel, const RoleLayout& layout,
                              std::string_view region, std::string_view prefix,
                              std::string_view block, Constants& constants) const {
  const Region& found = region_of(layout, region);
  // With a block for every rank, attention ranks have the first ones.
  const bool behind_sources = layout.role == Role::kAttention && found.peers == plan_.ranks();
  constants.add(fmt::format("k{}Offset", prefix),
                found.offset + (behind_sources ? plan_.attention_ranks * found.peer_bytes : 0),
                (behind_sources ? "worker 0's block of " : "") + where(kernel, layout, found));
  if (found.halves == 2) {
    constants.add(fmt::format("k{}HalfBytes", prefix), found.half_bytes, "by generation parity");
  }
  if (!block.empty()) {
    constants.add(fmt::format("k{}{}Bytes", prefix, block), found.peer_bytes,
                  fmt::format("{} items of {} bytes", found.items, found.item_bytes));
  }
}

void BucketKernels::add_offset(const Kernel& kernel, const RoleLayout& layout,
                               std::string_view region, std::string name,
                               Constants& constants) const {
  constants.add(std::move(name), region_of(layout, region).offset,
                where(kernel, layout, region_of(layout, region)));
}

void BucketKernels::add_replies(const Kernel& kernel, bool by_slot, Constants& constants) const {
  const std::string_view region = packets() ? "reply_packets" : plan_.has_view ? "view" : "replies";
  add_inbox(kernel, plan_.attention, region, "Replies", by_slot ? "Slot" : "", constants);
  constants.add(
      "kReplyRowBytes", region_of(plan_.attention, region).item_bytes,
      packets() ? fmt::format("{} packets at most", row_packets(plan_.row_bytes)) : "a raw row");
}

}  // namespace afdep::plan
