// Kernels that move rows through registers: flag_in_data and chunked; of a bulk bucket, collect.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "generator/plan/bucket_kernels.h"

namespace afdep::plan {
namespace {

constexpr int kChunkRowsInFlight = 3;  // of a token, while reply adds them up
constexpr int kChunkRepliesInFlight = 2;

// Units of which a CTA has a warp, at most.
std::int64_t units_of_a_cta(const PacketShape& shape) {
  const std::int64_t warps = shape.threads / 32;
  std::int64_t most = 0;
  for (std::int64_t first = 0; first < shape.grid * warps; first += warps) {
    const std::int64_t last = first + warps - 1;
    most = std::max(most, last / shape.row_warps - first / shape.row_warps + 1);
  }
  return most;
}

}  // namespace

Kernel BucketKernels::dispatch() const {
  Kernel kernel = start(Role::kAttention, Operation::kDispatch);
  Constants constants;
  const bool chunked = !packets();
  const PacketShape shape = source_shape();
  const bool one_round = !chunked && shape.one_round;
  constants.add("kBucket", request_.bucket, "tokens of one source at most");
  constants.add("kTopK", plan_.top_k, "choices of a token")
      .add("kExperts", plan_.experts, "ids are -1 or less than this")
      .add("kExpertsPerWorker", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kWorkers", plan_.ffn_ranks, "FFN ranks");
  if (chunked) {
    const ChunkShape chunk = dispatch_chunk();
    set_chunk_shape(kernel, chunk.grid, kMaxThreads, constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_lane_pieces(chunk, constants);
    constants.add("kChunkRows", chunk.chunk_rows, "rows under one release flag");
  } else {
    set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
    if (one_round) {
      constants.add("kRowBlocks", shape.row_ctas, "CTAs share a row");
    } else {
      constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid))
          .add("kWarps", kernel.threads / 32, "a CTA")
          .add("kGridWarps", kernel.grid * kernel.threads / 32,
               fmt::format("{} CTAs", kernel.grid));
    }
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    if (!one_round) add_lots(shape, constants);
    add_row_packets(/*with_shares=*/false, constants);
  }
  constants
      .add("kEntryPackets", table_entry_bytes(plan_.top_k) / 16,
           "of a token's table entry: two choices each")
      .add("kEntryBytes", table_entry_bytes(plan_.top_k), "16 a packet");
  add_inbox(kernel, plan_.ffn, "table", "Table", "Source", constants);
  const std::string_view rows = chunked ? "rows" : "row_packets";
  add_inbox(kernel, plan_.ffn, rows, "Rows", "Source", constants);
  constants.add(
      "kInboxRowBytes", region_of(plan_.ffn, rows).item_bytes,
      chunked ? "a raw row" : fmt::format("{} packets at most", row_packets(plan_.row_bytes)));
  if (chunked) add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_offset(kernel, plan_.attention, "destinations", "kDestinationsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"spelled", spelled()}};
  if (!chunked) kernel.structure["one_round"] = one_round;
  kernel.steps.push_back(
      await("done", "wait until each worker has read generation - 2 of this half"));
  kernel.steps.push_back(publish("table", "send every worker each token's choices and weights"));
  kernel.steps.push_back(publish("rows", "send each token's row to the workers of its experts"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for collect"));
  return kernel;
}

Result<Kernel> BucketKernels::receive() const {
  Kernel kernel = start(Role::kFfn, Operation::kReceive);
  Constants constants;
  const bool chunked = !packets();
  const bool expands = !plan_.ablation.separate_epilogues;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kLocalExperts", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks));
  if (!warp_ranked()) {
    constants.add("kAlignment", plan_.expert_alignment, "rows; an expert starts at a multiple");
  }
  ChunkShape chunk;
  std::int64_t blocks = 0;
  int ends_block = 0;  // 0: none, a warp does it besides
  if (chunked) {
    chunk =
        chunk_shape(plan_.row_bytes, units(), request_.ffn_sms, kCopyLaneVectors, kMaxThreads / 32);
    blocks = chunk.grid;
  } else {
    blocks = worker_shape().grid;
  }
  std::int64_t own_units = ceil_div<std::int64_t>(units(), blocks);
  if (early_look()) {
    own_units = units_of_a_cta(worker_shape());
  } else {
    blocks = ceil_div<std::int64_t>(units(), own_units);
  }
  if (chunked) {
    set_chunk_shape(kernel, static_cast<int>(blocks), kMaxThreads, constants);
    if (expands) {
      add_lane_pieces(chunk, constants);
      constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
      constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    }
    constants.add("kChunkRows", dispatch_chunk().chunk_rows, "rows under one release flag");
    if (plan_.zero_padding)
      constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word");
  } else {
    PacketShape shape = worker_shape();
    shape.grid = static_cast<int>(blocks);
    if (warp_ranked() && shape.grid < request_.ffn_sms) ends_block = shape.grid++;
    if (early_look()) {
      set_dealt_shape(kernel, shape, constants);
    } else {
      set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
      add_lots(shape, constants);
      constants.add("kWarps", kernel.threads / 32, "a CTA");
    }
    if (expands)
      constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(/*with_shares=*/warp_ranked(), constants);
  }
  const std::int64_t table_packets = units() * (table_entry_bytes(plan_.top_k) / 16);
  if (warp_ranked()) {
    if (ends_block > 0) {
      constants.add("kEndsBlock", ends_block, "publishes ends and counts, and no more");
    }
  } else {
    if (chunked) constants.add("kWarps", kernel.threads / 32, "a CTA");
    if (plan_.zero_padding) constants.add("kBlocks", blocks, "CTAs");
    constants.add("kOwnUnits", own_units, fmt::format("{} units over {} CTAs", units(), blocks))
        .add("kTableBatch",
             std::clamp<std::int64_t>(ceil_div<std::int64_t>(table_packets, kernel.threads), 1,
                                      kMaxTableBatch),
             fmt::format("table packets of a lane in flight, of {} in all", table_packets));
    kernel.shared_bytes = rank_table_bytes(plan_.local_experts(), own_units, plan_.top_k);
    constants.add("kSharedBytes", kernel.shared_bytes, "the rank table");
  }
  if (kernel.shared_bytes > kMaxSharedBytes) {
    return Failure(
        ErrorCode::kLaunch,
        fmt::format(
            "bucket {}: receive needs {} bytes of shared memory a CTA for the choices of {} "
            "(source, token) units, {} at most fit",
            request_.bucket, kernel.shared_bytes, own_units, kMaxSharedBytes),
        fmt::format("raise kernel.num_sms for ffn above {}, or lower the bucket",
                    request_.ffn_sms));
  }
  add_inbox(kernel, plan_.ffn, "table", "Table", "Source", constants);
  if (expands || !chunked) {
    const std::string_view rows = chunked ? "rows" : "row_packets";
    add_inbox(kernel, plan_.ffn, rows, "Rows", "Source", constants);
    constants.add(
        "kInboxRowBytes", region_of(plan_.ffn, rows).item_bytes,
        chunked ? "a raw row" : fmt::format("{} packets at most", row_packets(plan_.row_bytes)));
  }
  if (chunked) add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_units(constants);
  kernel.constants = constants.take();
  kernel.structure = {{"zero_padding", plan_.zero_padding},
                      {"reply_by_slot", reply_by_slot()},
                      {"early_look", early_look()},
                      {"warp_ranked", warp_ranked()}};
  if (!chunked) kernel.structure["ends_block"] = ends_block > 0;
  kernel.steps.push_back(await("table", "read every source's choices and count them"));
  kernel.steps.push_back(step(
      StepKind::kCompute, "rank this CTA's choices, place the experts, publish ends and counts"));
  kernel.steps.push_back(await("rows", "wait for each row that chose a local expert"));
  if (expands) {
    kernel.steps.push_back(
        step(StepKind::kCompute, "write the row once for each local expert that it chose"));
  }
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for reply"));
  return kernel;
}

Kernel BucketKernels::reply() const {
  Kernel kernel = start(Role::kFfn, Operation::kReply);
  Constants constants;
  const bool chunked = !packets();
  int done_block = 0;  // 0: block 0 does it behind its replies
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks");
  if (!chunked) {
    constants.add("kUnits", units(),
                  fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket));
  }
  constants.add("kTopK", plan_.top_k, "choices of a token");
  if (chunked) {
    const ChunkShape chunk = reply_chunk();
    set_chunk_shape(kernel, chunk.grid, sum_threads(), constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
    if (plan_.top_k > 1)
      constants.add("kRowsInFlight", bulk() ? 2 : kChunkRowsInFlight,
                    "of a token, in a lane's registers");
    constants.add("kChunkRows", chunk.chunk_rows, "rows under one release flag")
        .add("kSourceChunks", ceil_div(request_.bucket, chunk.chunk_rows), "chunks of one source");
  } else {
    PacketShape shape = worker_shape();
    if (early_look() && shape.grid < request_.ffn_sms) done_block = shape.grid++;
    if (early_look()) {
      set_dealt_shape(kernel, shape, constants);
    } else {
      set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
      constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid));
      add_lots(shape, constants);
    }
    add_row_packets(/*with_shares=*/false, constants);
  }
  if (!chunked && plan_.top_k > 1) {
    constants.add("kRowsInFlight", rows_in_flight(kernel.register_ceiling),
                  "of a token, in a lane's registers");
  }
  if (done_block > 0) constants.add("kDoneBlock", done_block, "tells the sources, and no more");
  if (plan_.top_k == 1) {
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  }
  add_replies(kernel, /*by_slot=*/true, constants);
  if (chunked) add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_units(constants);
  kernel.constants = constants.take();
  kernel.structure = {{"single_choice", plan_.top_k == 1},
                      {"reply_by_slot", reply_by_slot()},
                      {"done_block", done_block > 0}};
  if (chunked) {
    kernel.structure["has_view"] = plan_.has_view;
    kernel.structure["shares_units"] = bulk() && bulk_plan().shares_units();  // by its receive
  } else {
    kernel.structure["early_look"] = early_look();
  }
  kernel.steps.push_back(publish("done", "tell every source that this generation is read"));
  kernel.steps.push_back(publish(
      "replies", plan_.top_k == 1 ? "send each token's row back to its source"
                                  : "sum each token's rows in top-k order and send the sum back"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "close the generation"));
  return kernel;
}

// What collect and reduce have in common: the shape, and how replies are summed.
void BucketKernels::add_sum_of_replies(Kernel& kernel, Constants& constants) const {
  const bool chunked = !packets();
  const int slots = reply_slots(plan_.ffn_ranks, plan_.top_k);
  const bool single_reply = slots == 1;
  const bool waits_only =
      plan_.ablation.separate_epilogues && kernel.operation == Operation::kCollect;
  const bool copies_rows = !waits_only;
  if (chunked) {
    ChunkShape chunk = chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms,
                                   sum_vectors(), sum_threads() / 32);
    set_chunk_shape(kernel, chunk.grid, sum_threads(), constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    if (copies_rows) {
      constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
      add_lane_pieces(chunk, constants);
      constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
      if (!single_reply)
        constants.add("kRowsInFlight", kChunkRepliesInFlight, "replies in a lane's registers");
    }
    constants.add("kChunkRows", reply_chunk().chunk_rows, "rows under one release flag");
  } else {
    const PacketShape shape = source_shape();
    set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
    constants.add("kRowBlocks", shape.row_ctas, "CTAs share a row")
        .add("kRowThreads", shape.row_ctas * shape.group_warps * 32, "of a row in all of them")
        .add("kGridGroups", shape.grid / shape.row_ctas * shape.groups,
             fmt::format("{} CTAs", shape.grid));
    if (copies_rows)
      constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(/*with_shares=*/true, constants);
  }
  if (!single_reply && !chunked) {
    constants.add("kReplySlots", slots,
                  reply_by_slot() ? "a token's workers, at most its choices" : "one a worker");
  }
  if (copies_rows || !chunked) add_replies(kernel, /*by_slot=*/!single_reply, constants);
  if (chunked) add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "destinations", "kDestinationsOffset", constants);
  kernel.structure = {{"single_reply", single_reply}};
  if (chunked) kernel.structure["has_view"] = plan_.has_view;
}

Kernel BucketKernels::collect() const {
  Kernel kernel = start(Role::kAttention, Operation::kCollect);
  Constants constants;
  add_sum_of_replies(kernel, constants);
  kernel.constants = constants.take();
  kernel.steps.push_back(
      await("replies", "wait for the reply of each worker that a token went to"));
  if (!plan_.ablation.separate_epilogues) {
    kernel.steps.push_back(
        step(StepKind::kCompute, kernel.structure.at("single_reply")
                                     ? "write each token's one reply"
                                     : "sum each token's replies in worker order"));
  }
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "close the generation"));
  return kernel;
}

Kernel BucketKernels::collect_view() const {
  Kernel kernel = start(Role::kAttention, Operation::kCollectView);
  Constants constants;
  const ChunkShape chunk = chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms,
                                       sum_vectors(), sum_threads() / 32);
  set_chunk_shape(kernel, chunk.grid, sum_threads(), constants);
  constants.add("kWarps", kernel.threads / 32, "a CTA")
      .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid))
      .add("kRowVectors", plan_.row_bytes / 16, "16-byte vectors of a row")
      .add("kChunkRows", reply_chunk().chunk_rows, "rows under one release flag");
  add_replies(kernel, /*by_slot=*/false, constants);
  add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "destinations", "kDestinationsOffset", constants);
  kernel.constants = constants.take();
  kernel.steps.push_back(
      await("replies", "wait for the reply of each worker that a token went to"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "close the generation"));
  return kernel;
}

}  // namespace afdep::plan
