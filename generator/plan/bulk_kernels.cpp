// Kernels that move rows through rings of shared-memory stages.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "generator/plan/bucket_kernels.h"

namespace afdep::plan {
namespace {

// What a bulk kernel's barriers and work items take at most beside its tables.
constexpr std::int64_t barrier_bytes() { return 12 * 4 * (8 + 4 * 32); }

constexpr std::int64_t align(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

Kernel BucketKernels::dispatch_bulk() const {
  Kernel kernel = start(Role::kAttention, Operation::kDispatch);
  const BulkPlan bulk = bulk_plan();
  kernel.grid = bulk.slices;
  kernel.shared_bytes = bulk.dispatch_shared_bytes;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kExperts", plan_.experts, "ids are -1 or less than this")
      .add("kExpertsPerWorker", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kWorkers", plan_.ffn_ranks, "FFN ranks");
  set_threads(kernel, (bulk.copy.warps + 1) * 32, constants);
  constants
      .add("kWarps", kernel.threads / 32, "all rank and send choices; the last one has no ring")
      .add("kCopyWarps", bulk.copy.warps, "each moves rows through a ring of its own")
      .add("kStages", bulk.copy.stages, "of a ring, a row each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden))
      .add("kSharedBytes", kernel.shared_bytes, "rings and the slice's table")
      .add("kRouteBatch", std::min(8, ceil_div(bulk.slice_tokens, bulk.copy.warps + 1)),
           "tokens of a warp whose ids are in flight")
      .add("kSliceTokens", bulk.slice_tokens,
           fmt::format("{} tokens over {} CTAs", request_.bucket, bulk.slices))
      .add("kChunkRows", bulk.chunk_rows, "rows of a warp under one release flag")
      .add("kWarpChunks", bulk.warp_chunks, "chunks of a warp")
      .add("kSliceFlags", bulk.slice_flags(), "of the chunks of its copy warps")
      .add("kCountPackets", count_packets(plan_.local_experts()),
           "of a slice for one worker: six experts each");
  add_inbox(kernel, plan_.ffn, "counts", "Counts", "Source", constants);
  add_inbox(kernel, plan_.ffn, "rows", "Rows", "Source", constants);
  constants.add("kInboxRowBytes", region_of(plan_.ffn, "rows").item_bytes, "a raw row");
  add_inbox(kernel, plan_.ffn, "choices", "Choices", "Source", constants);
  constants.add("kChoicesTokenBytes", choice_bytes(plan_.top_k), "8 a choice, in units of 16");
  add_inbox(kernel, plan_.ffn, "choice_flags", "ChoiceFlags", "Source", constants);
  add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_offset(kernel, plan_.attention, "destinations", "kDestinationsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"spelled", spelled()}};
  kernel.steps.push_back(
      await("done", "wait until each worker has read generation - 2 of this half"));
  kernel.steps.push_back(publish("counts", "rank the slice's choices and send their counts ahead"));
  kernel.steps.push_back(publish("choices", "send every worker the ranked choices and weights"));
  kernel.steps.push_back(
      publish("rows", "copy each token's row to the workers of its experts, chunk by chunk"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for collect"));
  return kernel;
}

Result<Kernel> BucketKernels::receive_bulk() const {
  Kernel kernel = start(Role::kFfn, Operation::kReceive);
  const BulkPlan bulk = bulk_plan();
  kernel.grid = static_cast<int>(bulk.blocks);
  kernel.shared_bytes = bulk.receive_shared_bytes;
  const bool expands = !plan_.ablation.separate_epilogues;
  if (!expands) kernel.shared_bytes -= bulk.expand_ring_bytes();
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kLocalExperts", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kAlignment", plan_.expert_alignment, "rows; an expert starts at a multiple");
  set_threads(kernel, bulk.expand.warps * 32, constants);
  constants.add("kWarps", bulk.expand.warps,
                expands ? "each moves rows through a ring of its own" : "a CTA");
  if (expands) {
    constants.add("kStages", bulk.expand.stages, "of a ring, a row each")
        .add("kLead", bulk.expand.lead, "rows on their way in while an older one goes out")
        .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  }
  if (plan_.zero_padding) {
    constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word")
        .add("kBlocks", bulk.blocks, "CTAs");
  }
  constants
      .add("kSharedBytes", kernel.shared_bytes,
           expands ? "rings and the prefix table" : "the prefix table")
      .add("kOwnUnits", bulk.own_units, fmt::format("{} units over {} CTAs", units(), bulk.blocks))
      .add("kWarpUnits", ceil_div<std::int64_t>(bulk.own_units, bulk.expand.warps),
           "of them, at most")
      .add("kSourceSlices", bulk.slices, "dispatch CTAs of a source")
      .add("kSliceTokens", bulk.slice_tokens, "tokens of one of them")
      .add("kOwnSlices", bulk.own_slices, "that a CTA's units touch at most")
      .add("kCopyWarps", bulk.copy.warps,
           "of dispatch: token t of a slice is warp t % kCopyWarps's")
      .add("kChunkRows", bulk.chunk_rows, "rows of a dispatch warp under one release flag")
      .add("kWarpChunks", bulk.warp_chunks, "chunks of a dispatch warp")
      .add("kSliceFlags", bulk.slice_flags(), "of the chunks of its copy warps");
  const std::int64_t packets =
      std::int64_t{plan_.attention_ranks} * bulk.slices * count_packets(plan_.local_experts());
  constants.add(
      "kCountBatch",
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(packets, kernel.threads), 1, kMaxTableBatch),
      fmt::format("count packets of a lane in flight, of {} in all", packets));
  if (kernel.shared_bytes > kMaxSharedBytes) {
    return Failure(ErrorCode::kLaunch,
                   fmt::format("bucket {}: receive needs {} bytes of shared memory a CTA for one "
                               "ring and the counts of "
                               "{} slices, {} at most fit",
                               request_.bucket, kernel.shared_bytes,
                               plan_.attention_ranks * bulk.slices, kMaxSharedBytes),
                   "force kernel.protocol: chunked for this bucket");
  }
  add_inbox(kernel, plan_.ffn, "counts", "Counts", "Source", constants);
  if (expands) {
    add_inbox(kernel, plan_.ffn, "rows", "Rows", "Source", constants);
    constants.add("kInboxRowBytes", region_of(plan_.ffn, "rows").item_bytes, "a raw row");
  }
  add_inbox(kernel, plan_.ffn, "choices", "Choices", "Source", constants);
  constants.add("kChoicesTokenBytes", choice_bytes(plan_.top_k), "8 a choice, in units of 16");
  add_inbox(kernel, plan_.ffn, "choice_flags", "ChoiceFlags", "Source", constants);
  add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  if (reply_by_slot()) add_offset(kernel, plan_.ffn, "unit_slots", "kUnitSlotsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"zero_padding", plan_.zero_padding}, {"reply_by_slot", reply_by_slot()}};
  kernel.steps.push_back(await("counts", "read the counts of every slice"));
  kernel.steps.push_back(step(StepKind::kCompute, "place the experts, publish ends and counts"));
  kernel.steps.push_back(await("choices", "read the choices of this CTA's units"));
  kernel.steps.push_back(await("rows", "wait for the chunk of each row that chose a local expert"));
  if (expands) {
    kernel.steps.push_back(
        step(StepKind::kCompute, "copy the row to each local expert that it chose"));
  }
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for reply"));
  return kernel;
}

Kernel BucketKernels::reply_bulk() const {
  Kernel kernel = start(Role::kFfn, Operation::kReply);
  const ChunkShape chunk = reply_chunk();
  const BulkShape ring = bulk_shape(chunk.lane_vectors * 512, barrier_bytes());
  kernel.grid = chunk.grid;
  kernel.shared_bytes = ring.ring_bytes + 16 * ring.warps * ring.stages + 256;
  const int source_chunks = ceil_div(request_.bucket, chunk.chunk_rows);
  const int chunks = plan_.attention_ranks * source_chunks;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kTopK", plan_.top_k, "choices of a token");
  set_threads(kernel, ring.warps * 32, constants);
  constants.add("kWarps", ring.warps, "each takes pieces of rows through a ring of its own")
      .add("kStages", ring.stages, "of a ring, a piece each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  add_lane_pieces(chunk, constants);
  constants.add("kPieces", chunk.pieces, "of a row")
      .add("kPieceBytes", chunk.lane_vectors * 512, "32 lanes x kLaneVectors x 16")
      .add("kSharedBytes", kernel.shared_bytes, "rings")
      .add("kChunkRows", chunk.chunk_rows, "rows under one release flag")
      .add("kChunks", chunks, fmt::format("{} of each source", source_chunks))
      .add("kBlocks", kernel.grid, "CTAs");
  add_replies(kernel, /*by_slot=*/true, constants);
  add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  if (reply_by_slot()) add_offset(kernel, plan_.ffn, "unit_slots", "kUnitSlotsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"reply_by_slot", reply_by_slot()}, {"has_view", plan_.has_view}};
  kernel.steps.push_back(
      publish("replies", "sum each token's rows in top-k order and send the sum back"));
  kernel.steps.push_back(publish("done", "tell every source that this generation is read"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "close the generation"));
  return kernel;
}

BucketKernels::BulkPlan BucketKernels::bulk_plan() const {
  BulkPlan bulk;
  bulk.slice_tokens = ceil_div(request_.bucket, std::min(request_.attention_sms, request_.bucket));
  bulk.slices = ceil_div(request_.bucket, bulk.slice_tokens);
  const int dispatch_warps = kBulkThreads / 32 + 1;  // at most: sizes the table before the rings
  const std::int64_t slice_table = align(std::int64_t{8} * bulk.slice_tokens * (1 + plan_.top_k) +
                                         std::int64_t{2} * plan_.experts * (1 + dispatch_warps));
  bulk.copy = bulk_shape(plan_.row_bytes, slice_table + barrier_bytes());
  bulk.dispatch_shared_bytes =
      bulk.copy.ring_bytes + 8 * bulk.copy.warps * bulk.copy.stages + slice_table + 256;
  const int warp_rows = ceil_div(bulk.slice_tokens, bulk.copy.warps);
  bulk.chunk_rows = warp_rows > 4 ? 2 : 1;
  bulk.warp_chunks = ceil_div(warp_rows, bulk.chunk_rows);

  bulk.blocks = std::min<std::int64_t>(request_.ffn_sms, units());
  bulk.own_units = ceil_div<std::int64_t>(units(), bulk.blocks);
  bulk.blocks = ceil_div<std::int64_t>(units(), bulk.own_units);
  const auto slice_of = [&](std::int64_t unit) {
    return unit / request_.bucket * bulk.slices + unit % request_.bucket / bulk.slice_tokens;
  };
  for (std::int64_t block = 0; block < bulk.blocks; ++block) {
    const std::int64_t first = block * bulk.own_units;
    const std::int64_t last = std::min(first + bulk.own_units, units()) - 1;
    bulk.own_slices = std::max(bulk.own_slices, slice_of(last) - slice_of(first) + 1);
  }
  const std::int64_t local = plan_.local_experts();
  const std::int64_t prefix_table = align(4 * local * (2 + bulk.own_slices) + 4 * bulk.own_slices +
                                          4 * bulk.own_units * plan_.top_k +
                                          std::int64_t{plan_.attention_ranks} * bulk.slices * 12 *
                                              count_packets(plan_.local_experts()));
  bulk.expand = bulk_shape(plan_.row_bytes, prefix_table + barrier_bytes());
  bulk.receive_shared_bytes = bulk.expand_ring_bytes() + prefix_table + 256;
  return bulk;
}

}  // namespace afdep::plan
