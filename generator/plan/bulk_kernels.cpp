// Kernels that move rows through rings of shared-memory stages.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "generator/plan/bucket_kernels.h"

namespace afdep::plan {
namespace {

// What a bulk kernel's barriers and work items take at most beside its tables.
constexpr std::int64_t barrier_bytes() { return 12 * 4 * (8 + 4 * 32); }

// Slots of a mailbox: one for each item that its warp is likely to have and one for the last, to a
// number that divides well. Barriers are initialised one by one, two a slot, before a kernel
// begins.
std::int64_t mail_slots(std::int64_t items, int warps) {
  const std::int64_t each = ceil_div<std::int64_t>(items, warps) + 1;
  if (each >= kMaxMailSlots) return kMaxMailSlots;
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(each)));
}

// Mail of that many warps: two barriers and a word a slot.
constexpr std::int64_t mail_bytes(int warps) { return std::int64_t{24} * kMaxMailSlots * warps; }

constexpr std::int64_t align(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

}  // namespace

void BucketKernels::add_choices(const Kernel& kernel, Constants& constants) const {
  add_inbox(kernel, plan_.ffn, "choices", "Choices", "Source", constants);
  const int packets = choice_packets(plan_.top_k);
  if (kernel.operation == Operation::kDispatch) {
    constants.add("kChoicePackets", packets, "of a token: three choices or weights each");
  }
  constants.add("kChoicesTokenBytes", region_of(plan_.ffn, "choices").item_bytes,
                fmt::format("{} packets", packets));
}

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
      .add("kCopyWarps", bulk.copy.warps,
           "send choices, then rows by a ring each; the last warp sends counts")
      .add("kStages", bulk.copy.stages, "of a ring, a row each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden))
      .add("kSharedBytes", kernel.shared_bytes, "rings and the slice's table")
      .add("kRouteBatch",
           std::min(kMaxRouteBatch, ceil_div(bulk.segment_tokens(), 32 / plan_.top_k)),
           "ids of a lane in flight")
      .add("kSliceTokens", bulk.slice_tokens,
           fmt::format("{} tokens over {} CTAs", request_.bucket, bulk.slices))
      .add("kMailSlots", mail_slots(bulk.slice_tokens, bulk.copy.warps),
           "rows of a warp arrived and not yet flagged, at most")
      .add("kCountPackets", count_packets(plan_.local_experts()),
           "of a slice for one worker: six experts each");
  add_inbox(kernel, plan_.ffn, "counts", "Counts", "Source", constants);
  add_inbox(kernel, plan_.ffn, "rows", "Rows", "Source", constants);
  constants.add("kInboxRowBytes", region_of(plan_.ffn, "rows").item_bytes, "a raw row");
  add_choices(kernel, constants);
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
  if (!expands) kernel.shared_bytes -= bulk.expand_ring_bytes(plan_.top_k);
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kLocalExperts", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kAlignment", plan_.expert_alignment, "rows; an expert starts at a multiple");
  set_threads(kernel, bulk.expand.warps * 32, constants);
  constants.add("kBlocks", bulk.blocks, "CTAs");
  if (expands) {
    constants.add("kWarps", bulk.expand.warps, "each moves rows through a ring of its own")
        .add("kStages", bulk.expand.stages, "of a ring, a row each")
        .add("kLead", bulk.expand.lead, "rows on their way in while an older one goes out")
        .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  }
  if (plan_.zero_padding) {
    constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word");
  }
  constants
      .add("kSharedBytes", kernel.shared_bytes,
           expands ? "rings and the prefix table" : "the prefix table")
      .add("kSourceSlices", bulk.slices, "dispatch CTAs of a source")
      .add("kSliceTokens", bulk.slice_tokens, "tokens of one of them")
      .add("kOwnUnits", bulk.own_units,
           bulk.shares_units()
               ? fmt::format("of {} a CTA ({} slices x {} tokens / {}); it shares the others",
                             bulk.block_units, plan_.attention_ranks * bulk.slices,
                             bulk.slice_tokens, bulk.blocks)
               : fmt::format("{} slices x {} tokens over {} CTAs",
                             plan_.attention_ranks * bulk.slices, bulk.slice_tokens, bulk.blocks))
      .add("kGroupUnits", bulk.group_units, "that a warp takes at once")
      .add("kSingleOwn", bulk.single_own, "from here on it takes one, so that warps end together")
      .add("kWidePrefix", bulk.wide_prefix ? 1 : 0, "counts of more than 16 bits");
  const std::int64_t packets =
      std::int64_t{plan_.attention_ranks} * bulk.slices * count_packets(plan_.local_experts());
  constants.add(
      "kCountBatch",
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(packets, kernel.threads), 1, kMaxTableBatch),
      fmt::format("count packets of a lane in flight, of {} in all", packets));
  const std::int64_t choices = bulk.own_units * choice_packets(plan_.top_k);
  constants.add(
      "kChoiceBatch",
      std::clamp<std::int64_t>(ceil_div<std::int64_t>(choices, kernel.threads), 1, kMaxTableBatch),
      fmt::format("choice packets of a lane in flight, of {} in all", choices));
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
  add_choices(kernel, constants);
  add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_units(constants);
  kernel.constants = constants.take();
  kernel.structure = {{"zero_padding", plan_.zero_padding},
                      {"reply_by_slot", reply_by_slot()},
                      {"shares_units", bulk.shares_units()}};
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
  // With the warp that flags, no more than kBulkThreads: a thirteenth warp would take a quarter of
  // an SM's registers as four warps do, and no packet kernel of 8 or 32 tokens would fit beside it.
  const BulkShape ring =
      bulk_shape(chunk.lane_vectors * 512, barrier_bytes(), kBulkThreads / 32 - 1);
  kernel.grid = chunk.grid;
  // A stage's barrier and work.
  kernel.shared_bytes =
      ring.ring_bytes + 16 * std::int64_t{ring.warps} * ring.stages + mail_bytes(ring.warps) + 256;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kTopK", plan_.top_k, "choices of a token");
  set_threads(kernel, (ring.warps + 1) * 32, constants);
  constants
      .add("kSumWarps", ring.warps,
           "each sums through a ring of its own; the last warp flags replies")
      .add("kStages", ring.stages, "of a ring, a piece each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  add_lane_pieces(chunk, constants);
  constants.add("kPieces", chunk.pieces, "of a row")
      .add("kPieceBytes", chunk.lane_vectors * 512, "32 lanes x kLaneVectors x 16")
      .add("kMailSlots",
           mail_slots(ceil_div<std::int64_t>(units() * chunk.pieces, kernel.grid), ring.warps),
           "replies of a warp stored and not yet flagged, at most")
      .add("kSharedBytes", kernel.shared_bytes, "rings and mail")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kBlocks", kernel.grid, "CTAs");
  add_replies(kernel, /*by_slot=*/true, constants);
  add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_units(constants);
  kernel.constants = constants.take();
  kernel.structure = {
      {"reply_by_slot", reply_by_slot()},
      {"has_view", plan_.has_view},
      {"done_block", false},
      {"shares_units", bulk_plan().shares_units()},
      {"whole_rows", chunk.pieces == 1 && plan_.row_bytes == chunk.lane_vectors * 512}};
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
  const int dispatch_warps = kBulkThreads / 32;  // at most: sizes the table before the rings
  const std::int64_t slice_table = align(std::int64_t{8} * bulk.slice_tokens * (1 + plan_.top_k) +
                                         std::int64_t{2} * plan_.experts * (1 + dispatch_warps));
  bulk.copy = bulk_shape(plan_.row_bytes, slice_table + barrier_bytes());
  bulk.dispatch_shared_bytes = bulk.copy.ring_bytes + 8 * bulk.copy.warps * bulk.copy.stages +
                               mail_bytes(bulk.copy.warps) + slice_table + 256;

  bulk.blocks = std::min<std::int64_t>(request_.ffn_sms, units());
  const std::int64_t local = plan_.local_experts();
  const std::int64_t slices = std::int64_t{plan_.attention_ranks} * bulk.slices;
  bulk.block_units = ceil_div<std::int64_t>(slices * bulk.slice_tokens, bulk.blocks);
  bulk.wide_prefix = units() > 0xffff;
  const std::int64_t tables =
      align(4 * local * 2 + 4 * std::max<std::int64_t>(kBulkThreads, local) +
            slices * (bulk.wide_prefix ? 24 : 12) * count_packets(plan_.local_experts()) +
            8 * (bulk.block_units + kBulkThreads / 32) * plan_.top_k);
  bulk.expand = bulk_shape(plan_.row_bytes, tables + barrier_bytes());
  // Few units a warp: all at once, so that it may take whichever comes first. Else some, and one by
  // one at the end, so that warps end together.
  const auto warp_units =
      static_cast<int>(ceil_div<std::int64_t>(bulk.block_units, bulk.expand.warps));
  const bool few = warp_units <= kFewUnits;
  // Shared units cost a trip to memory for the number and one for the choices: too much where a
  // warp has one or two in all.
  const bool shares = !plan_.ablation.separate_epilogues && warp_units >= kSharingUnits;
  bulk.own_units =
      bulk.block_units - (shares ? bulk.block_units / (few ? kFewShared : kManyShared) : 0);
  bulk.group_units =
      few ? static_cast<int>(ceil_div<std::int64_t>(bulk.own_units, bulk.expand.warps))
          : kGroupUnits;
  bulk.single_own = few ? bulk.own_units : bulk.own_units - 3 * bulk.expand.warps;
  bulk.receive_shared_bytes = bulk.expand_ring_bytes(plan_.top_k) + tables + 256;
  return bulk;
}

}  // namespace afdep::plan
