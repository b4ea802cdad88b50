#include "generator/plan/kernels.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "generator/plan/constants.h"
#include "generator/plan/layout.h"
#include "generator/plan/shape.h"

namespace afdep::plan {
namespace {

constexpr int kSpelledWorkers = 8;   // up to so many peers are written out one by one
constexpr int kCopyLaneVectors = 4;  // dispatch and receive: 16 registers of payload a lane
constexpr int kSumLaneVectors = 2;   // reply and collect: four such pieces and their FP32 sums
constexpr int kBulkSumVectors = 8;   // reply and collect of a bulk bucket: a CTA has its SM alone
constexpr int kChunkRowsInFlight = 3;
constexpr int kChunkRepliesInFlight = 2;
constexpr int kMaxTableBatch = 4;  // table packets of a lane in flight

// What a bulk kernel's barriers and rows of stages take at most beside its tables.
constexpr std::int64_t barrier_bytes() { return 12 * 4 * (8 + 4 * 32); }

constexpr std::int64_t align(std::int64_t bytes) { return (bytes + 15) / 16 * 16; }

template <typename T>
constexpr T ceil_div(T value, T by) {
  return (value + by - 1) / by;
}

// Everything that the kernels of one bucket share.
class BucketKernels {
 public:
  BucketKernels(const ExchangePlan& plan, const BucketRequest& request)
      : plan_(plan), request_(request) {}

  [[nodiscard]] Kernel dispatch() const;
  [[nodiscard]] Result<Kernel> receive() const;
  [[nodiscard]] Kernel dispatch_bulk() const;
  [[nodiscard]] Result<Kernel> receive_bulk() const;
  [[nodiscard]] Kernel reply_bulk() const;
  [[nodiscard]] Kernel reply() const;
  [[nodiscard]] Kernel collect() const;
  [[nodiscard]] Kernel collect_view() const;

  // What dispatch and receive of a bulk bucket agree on, and the shape of each.
  struct BulkPlan {
    int slice_tokens = 0;
    int slices = 0;  // of one source
    BulkShape copy;  // dispatch
    int chunk_rows = 1;
    int warp_chunks = 1;
    std::int64_t dispatch_shared_bytes = 0;
    std::int64_t blocks = 0;  // receive
    std::int64_t own_units = 0;
    std::int64_t own_slices = 0;
    BulkShape expand;  // receive
    std::int64_t receive_shared_bytes = 0;
    [[nodiscard]] int slice_flags() const { return 1 + copy.warps * warp_chunks; }
  };
  [[nodiscard]] BulkPlan bulk_plan() const;

  [[nodiscard]] ChunkShape dispatch_chunk() const {
    return chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms, kCopyLaneVectors,
                       kMaxThreads / 32);
  }
  [[nodiscard]] ChunkShape reply_chunk() const {
    ChunkShape shape =
        chunk_shape(plan_.row_bytes, units(), request_.ffn_sms, sum_vectors(), sum_threads() / 32);
    // A bulk reply's warps take chunks as they become free: small ones even out what each has to
    // sum.
    if (bulk()) shape.chunk_rows = std::min(shape.chunk_rows, 4);
    shape.chunk_rows = std::min(shape.chunk_rows, request_.bucket);
    return shape;
  }

 private:
  [[nodiscard]] bool bulk() const { return request_.protocol == Protocol::kBulk; }
  // Reply and collect of raw rows: vectors of a lane in flight, and threads of a CTA.
  [[nodiscard]] int sum_vectors() const { return bulk() ? kBulkSumVectors : kSumLaneVectors; }
  [[nodiscard]] int sum_threads() const { return bulk() ? kBulkThreads : kMaxThreads; }
  [[nodiscard]] bool packets() const { return request_.protocol == Protocol::kFlagInData; }
  [[nodiscard]] std::int64_t units() const {
    return std::int64_t{plan_.attention_ranks} * request_.bucket;
  }
  [[nodiscard]] bool spelled() const { return plan_.ffn_ranks <= kSpelledWorkers; }
  [[nodiscard]] bool reply_by_slot() const { return plan_.ffn_ranks > plan_.top_k; }

  [[nodiscard]] Kernel start(Role role, Operation operation) const;
  [[nodiscard]] PacketShape packets_for(std::int64_t items, int sms) const {
    return packet_shape(plan_.row_bytes, packet_run(plan_, request_), items, sms);
  }
  // with_groups: the kernel steps over items by groups; one that looks early gives each group one.
  void set_packet_shape(Kernel& kernel, const PacketShape& shape, bool with_groups,
                        Constants& constants) const;
  void set_chunk_shape(Kernel& kernel, int grid, int threads, Constants& constants) const;
  void add_threads(const Kernel& kernel, Constants& constants) const;
  void add_lane_pieces(const ChunkShape& shape, Constants& constants) const;
  // with_shares: the kernel counts parts; one that gives each lane one part does not.
  void add_row_packets(bool with_shares, Constants& constants) const;
  // A region that `kernel` addresses by half and by block: the writer's block of a peer's window,
  // or all blocks of its own.
  void add_inbox(const Kernel& kernel, const RoleLayout& layout, std::string_view region,
                 std::string_view prefix, std::string_view block, Constants& constants) const;
  void add_offset(const Kernel& kernel, const RoleLayout& layout, std::string_view region,
                  std::string name, Constants& constants) const;
  // by_slot: replies of several workers, a block each; else all lie in one block.
  void add_replies(const Kernel& kernel, bool by_slot, Constants& constants) const;

  const ExchangePlan& plan_;
  const BucketRequest& request_;
};

Step step(StepKind kind, std::string text) { return {kind, {}, std::move(text)}; }
Step await(std::string signal, std::string text) {
  return {StepKind::kAwait, std::move(signal), std::move(text)};
}
Step publish(std::string signal, std::string text) {
  return {StepKind::kPublish, std::move(signal), std::move(text)};
}

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
  const bool collects = operation == Operation::kCollect || operation == Operation::kCollectView;
  const bool copies = operation == Operation::kReply && plan_.top_k == 1;
  const Protocol kind = bulk() && (collects || copies) ? Protocol::kChunked : request_.protocol;
  kernel.template_path = fmt::format("kernels/{}_{}.cu.in", to_string(operation), to_string(kind));
  kernel.blocks_per_sm = kBlocksPerSm;
  kernel.steps = {step(StepKind::kAwaitPreviousKernel, "wait for the kernel before this one"),
                  step(StepKind::kReleaseNextKernel, "let the next kernel become resident")};
  return kernel;
}

void BucketKernels::add_threads(const Kernel& kernel, Constants& constants) const {
  constants.add("kThreads", kernel.threads, fmt::format("{} warps", kernel.threads / 32))
      .add("kBlocksPerSm", kernel.blocks_per_sm,
           fmt::format("leaves {} registers a thread", kernel.register_ceiling));
}

void BucketKernels::set_packet_shape(Kernel& kernel, const PacketShape& shape, bool with_groups,
                                     Constants& constants) const {
  kernel.grid = shape.grid;
  kernel.threads = shape.threads;
  const int bound = std::max(kernel.threads, kPacketBoundThreads);
  kernel.register_ceiling = register_ceiling(bound, kBlocksPerSm);
  const bool counts_threads = kernel.role == Role::kFfn;  // receive and reply step by them
  if (counts_threads) {
    constants.add("kThreads", kernel.threads, fmt::format("{} warps", kernel.threads / 32));
  }
  constants
      .add(
          "kBoundThreads", bound,
          fmt::format("launched with {}; one bound keeps a bundle's kernels alike", kernel.threads))
      .add("kBlocksPerSm", kernel.blocks_per_sm,
           fmt::format("leaves {} registers a thread", kernel.register_ceiling));
  constants.add("kGroupThreads", shape.group_warps * 32,
                fmt::format("{} warps take a row", shape.group_warps));
  if (with_groups) constants.add("kGroups", shape.groups, "rows in flight in a CTA");
}

void BucketKernels::set_chunk_shape(Kernel& kernel, int grid, int threads,
                                    Constants& constants) const {
  kernel.grid = grid;
  kernel.threads = threads;
  kernel.blocks_per_sm = bulk() ? 1 : kBlocksPerSm;
  kernel.register_ceiling = register_ceiling(kernel.threads, kernel.blocks_per_sm);
  add_threads(kernel, constants);
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

void BucketKernels::add_inbox(const Kernel& kernel, const RoleLayout& layout,
                              std::string_view region, std::string_view prefix,
                              std::string_view block, Constants& constants) const {
  const Region& found = region_of(layout, region);
  constants.add(fmt::format("k{}Offset", prefix), found.offset, where(kernel, layout, found));
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

Kernel BucketKernels::dispatch() const {
  Kernel kernel = start(Role::kAttention, Operation::kDispatch);
  Constants constants;
  const bool chunked = !packets();
  const PacketShape shape = packets_for(request_.bucket, request_.attention_sms);
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
    if (!one_round) {
      constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid))
          .add("kWarps", kernel.threads / 32, "a CTA")
          .add("kGridWarps", kernel.grid * kernel.threads / 32,
               fmt::format("{} CTAs", kernel.grid));
    }
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(!one_round, constants);
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
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kLocalExperts", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kAlignment", plan_.expert_alignment, "rows; an expert starts at a multiple");
  ChunkShape chunk;
  bool early_look =
      false;  // one unit a group of warps: its row is looked at before the ids are ranked
  std::int64_t blocks = 0;
  if (chunked) {
    chunk =
        chunk_shape(plan_.row_bytes, units(), request_.ffn_sms, kCopyLaneVectors, kMaxThreads / 32);
    blocks = chunk.grid;
  } else {
    blocks = packets_for(units(), request_.ffn_sms).grid;
  }
  const std::int64_t own_units = ceil_div<std::int64_t>(units(), blocks);
  blocks = ceil_div<std::int64_t>(units(), own_units);
  if (chunked) {
    set_chunk_shape(kernel, static_cast<int>(blocks), kMaxThreads, constants);
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    constants.add("kChunkRows", dispatch_chunk().chunk_rows, "rows under one release flag");
    if (plan_.zero_padding)
      constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word");
  } else {
    PacketShape shape = packets_for(units(), request_.ffn_sms);
    early_look = shape.one_round;
    shape.grid = static_cast<int>(blocks);
    set_packet_shape(kernel, shape, /*with_groups=*/!early_look, constants);
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(/*with_shares=*/!early_look, constants);
  }
  constants.add("kWarps", kernel.threads / 32, "a CTA");
  if (plan_.zero_padding) constants.add("kBlocks", blocks, "CTAs");
  constants.add("kOwnUnits", own_units, fmt::format("{} units over {} CTAs", units(), blocks));
  const std::int64_t table_packets = units() * (table_entry_bytes(plan_.top_k) / 16);
  constants.add("kTableBatch",
                std::clamp<std::int64_t>(ceil_div<std::int64_t>(table_packets, kernel.threads), 1,
                                         kMaxTableBatch),
                fmt::format("table packets of a lane in flight, of {} in all", table_packets));
  kernel.shared_bytes = rank_table_bytes(plan_.local_experts(), own_units, plan_.top_k);
  constants.add("kSharedBytes", kernel.shared_bytes, "the rank table");
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
  const std::string_view rows = chunked ? "rows" : "row_packets";
  add_inbox(kernel, plan_.ffn, rows, "Rows", "Source", constants);
  constants.add(
      "kInboxRowBytes", region_of(plan_.ffn, rows).item_bytes,
      chunked ? "a raw row" : fmt::format("{} packets at most", row_packets(plan_.row_bytes)));
  if (chunked) add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  if (reply_by_slot()) add_offset(kernel, plan_.ffn, "unit_slots", "kUnitSlotsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"zero_padding", plan_.zero_padding},
                      {"reply_by_slot", reply_by_slot()},
                      {"early_look", early_look}};
  kernel.steps.push_back(await("table", "read every source's choices and count them"));
  kernel.steps.push_back(step(
      StepKind::kCompute, "rank this CTA's choices, place the experts, publish ends and counts"));
  kernel.steps.push_back(await("rows", "wait for each row that chose a local expert"));
  kernel.steps.push_back(
      step(StepKind::kCompute, "write the row once for each local expert that it chose"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for reply"));
  return kernel;
}

void BucketKernels::add_replies(const Kernel& kernel, bool by_slot, Constants& constants) const {
  const std::string_view region = packets() ? "reply_packets" : plan_.has_view ? "view" : "replies";
  add_inbox(kernel, plan_.attention, region, "Replies", by_slot ? "Slot" : "", constants);
  constants.add(
      "kReplyRowBytes", region_of(plan_.attention, region).item_bytes,
      packets() ? fmt::format("{} packets at most", row_packets(plan_.row_bytes)) : "a raw row");
}

Kernel BucketKernels::reply() const {
  Kernel kernel = start(Role::kFfn, Operation::kReply);
  Constants constants;
  const bool chunked = !packets();
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
    const PacketShape shape = packets_for(units(), request_.ffn_sms);
    set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
    constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid));
    add_row_packets(/*with_shares=*/true, constants);
  }
  if (plan_.top_k == 1) {
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  }
  add_replies(kernel, /*by_slot=*/true, constants);
  if (chunked) add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "done", "kDoneOffset", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  if (reply_by_slot()) add_offset(kernel, plan_.ffn, "unit_slots", "kUnitSlotsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"single_choice", plan_.top_k == 1}, {"reply_by_slot", reply_by_slot()}};
  if (chunked) kernel.structure["has_view"] = plan_.has_view;
  kernel.steps.push_back(publish("done", "tell every source that this generation is read"));
  kernel.steps.push_back(publish(
      "replies", plan_.top_k == 1 ? "send each token's row back to its source"
                                  : "sum each token's rows in top-k order and send the sum back"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "close the generation"));
  return kernel;
}

Kernel BucketKernels::collect() const {
  Kernel kernel = start(Role::kAttention, Operation::kCollect);
  Constants constants;
  const bool chunked = !packets();
  const int slots = reply_slots(plan_.ffn_ranks, plan_.top_k);
  const bool single_reply = slots == 1;
  if (chunked) {
    ChunkShape chunk = chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms,
                                   sum_vectors(), sum_threads() / 32);
    set_chunk_shape(kernel, chunk.grid, sum_threads(), constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
    if (!single_reply)
      constants.add("kRowsInFlight", kChunkRepliesInFlight, "replies in a lane's registers");
    constants.add("kChunkRows", reply_chunk().chunk_rows, "rows under one release flag");
  } else {
    const PacketShape shape = packets_for(request_.bucket, request_.attention_sms);
    set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
    constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid));
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(/*with_shares=*/true, constants);
  }
  if (!single_reply && !chunked) {
    constants.add("kReplySlots", slots,
                  reply_by_slot() ? "a token's workers, at most its choices" : "one a worker");
  }
  add_replies(kernel, /*by_slot=*/!single_reply, constants);
  if (chunked) add_inbox(kernel, plan_.attention, "reply_flags", "Flags", "Worker", constants);
  add_offset(kernel, plan_.attention, "destinations", "kDestinationsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"single_reply", single_reply}};
  if (chunked) kernel.structure["has_view"] = plan_.has_view;
  kernel.steps.push_back(
      await("replies", "wait for the reply of each worker that a token went to"));
  kernel.steps.push_back(
      step(StepKind::kCompute, single_reply ? "write each token's one reply"
                                            : "sum each token's replies in worker order"));
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

Kernel BucketKernels::dispatch_bulk() const {
  Kernel kernel = start(Role::kAttention, Operation::kDispatch);
  const BulkPlan bulk = bulk_plan();
  kernel.grid = bulk.slices;
  kernel.threads = (bulk.copy.warps + 1) * 32;
  kernel.blocks_per_sm = 1;
  kernel.register_ceiling = register_ceiling(kernel.threads, 1);
  kernel.shared_bytes = bulk.dispatch_shared_bytes;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kExperts", plan_.experts, "ids are -1 or less than this")
      .add("kExpertsPerWorker", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kWorkers", plan_.ffn_ranks, "FFN ranks");
  add_threads(kernel, constants);
  constants.add("kWarps", kernel.threads / 32, "the last one ranks and sends the choices")
      .add("kCopyWarps", bulk.copy.warps, "each moves rows through a ring of its own")
      .add("kStages", bulk.copy.stages, "of a ring, a row each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden))
      .add("kSharedBytes", kernel.shared_bytes, "rings and the slice's table")
      .add("kRouteBatch", std::min(4, ceil_div(bulk.slice_tokens, bulk.copy.warps + 1)),
           "tokens of a warp whose ids are in flight")
      .add("kSliceTokens", bulk.slice_tokens,
           fmt::format("{} tokens over {} CTAs", request_.bucket, bulk.slices))
      .add("kChunkRows", bulk.chunk_rows, "rows of a warp under one release flag")
      .add("kWarpChunks", bulk.warp_chunks, "chunks of a warp")
      .add("kSliceFlags", bulk.slice_flags(), "of the choices, then of each warp's chunks")
      .add("kCountPackets", count_packets(plan_.local_experts()),
           "of a slice for one worker: six experts each");
  add_inbox(kernel, plan_.ffn, "counts", "Counts", "Source", constants);
  add_inbox(kernel, plan_.ffn, "rows", "Rows", "Source", constants);
  constants.add("kInboxRowBytes", region_of(plan_.ffn, "rows").item_bytes, "a raw row");
  add_inbox(kernel, plan_.ffn, "choices", "Choices", "Source", constants);
  constants.add("kChoicesTokenBytes", choice_bytes(plan_.top_k), "8 a choice, in units of 16");
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
  kernel.threads = bulk.expand.warps * 32;
  kernel.blocks_per_sm = 1;
  kernel.register_ceiling = register_ceiling(kernel.threads, 1);
  kernel.shared_bytes = bulk.receive_shared_bytes;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kTopK", plan_.top_k, "choices of a token")
      .add("kLocalExperts", plan_.local_experts(),
           fmt::format("{} experts over {} workers", plan_.experts, plan_.ffn_ranks))
      .add("kAlignment", plan_.expert_alignment, "rows; an expert starts at a multiple");
  add_threads(kernel, constants);
  constants.add("kWarps", bulk.expand.warps, "each moves rows through a ring of its own")
      .add("kStages", bulk.expand.stages, "of a ring, a row each")
      .add("kLead", bulk.expand.lead, "rows on their way in while an older one goes out")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  if (plan_.zero_padding) {
    constants.add("kRowWords", plan_.row_bytes / 4, "two BF16 elements a word")
        .add("kBlocks", bulk.blocks, "CTAs");
  }
  constants.add("kSharedBytes", kernel.shared_bytes, "rings and the prefix table")
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
      .add("kSliceFlags", bulk.slice_flags(), "of the choices, then of each warp's chunks");
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
  add_inbox(kernel, plan_.ffn, "rows", "Rows", "Source", constants);
  constants.add("kInboxRowBytes", region_of(plan_.ffn, "rows").item_bytes, "a raw row");
  add_inbox(kernel, plan_.ffn, "choices", "Choices", "Source", constants);
  constants.add("kChoicesTokenBytes", choice_bytes(plan_.top_k), "8 a choice, in units of 16");
  add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  if (reply_by_slot()) add_offset(kernel, plan_.ffn, "unit_slots", "kUnitSlotsOffset", constants);
  kernel.constants = constants.take();
  kernel.structure = {{"zero_padding", plan_.zero_padding}, {"reply_by_slot", reply_by_slot()}};
  kernel.steps.push_back(await("counts", "read the counts of every slice"));
  kernel.steps.push_back(step(StepKind::kCompute, "place the experts, publish ends and counts"));
  kernel.steps.push_back(await("choices", "read the choices of this CTA's units"));
  kernel.steps.push_back(await("rows", "wait for the chunk of each row that chose a local expert"));
  kernel.steps.push_back(
      step(StepKind::kCompute, "copy the row to each local expert that it chose"));
  kernel.steps.push_back(step(StepKind::kAdvanceGeneration, "open the generation for reply"));
  return kernel;
}

Kernel BucketKernels::reply_bulk() const {
  Kernel kernel = start(Role::kFfn, Operation::kReply);
  const ChunkShape chunk = reply_chunk();
  const BulkShape ring = bulk_shape(chunk.lane_vectors * 512, barrier_bytes());
  kernel.threads = ring.warps * 32;
  kernel.grid = chunk.grid;
  kernel.blocks_per_sm = 1;
  kernel.register_ceiling = register_ceiling(kernel.threads, 1);
  kernel.shared_bytes = ring.ring_bytes + 16 * ring.warps * ring.stages + 256;
  const int source_chunks = ceil_div(request_.bucket, chunk.chunk_rows);
  const int chunks = plan_.attention_ranks * source_chunks;
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kSources", plan_.attention_ranks, "attention ranks")
      .add("kTopK", plan_.top_k, "choices of a token");
  add_threads(kernel, constants);
  constants.add("kWarps", ring.warps, "each takes pieces of rows through a ring of its own")
      .add("kStages", ring.stages, "of a ring, a piece each")
      .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
  add_lane_pieces(chunk, constants);
  constants.add("kPieces", chunk.pieces, "of a row")
      .add("kPieceBytes", chunk.lane_vectors * 512, "32 lanes x kLaneVectors x 16")
      .add("kSharedBytes", kernel.shared_bytes, "rings")
      .add("kChunkRows", chunk.chunk_rows, "rows under one release flag")
      .add("kSourceChunks", source_chunks, "chunks of one source")
      .add("kChunks", chunks, "of all sources")
      .add("kBlockChunks", ceil_div(chunks, kernel.grid), "of a CTA's warps");
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
  const std::int64_t prefix_table =
      align(4 * local * (2 + bulk.own_slices) + 4 * bulk.own_units * plan_.top_k +
            std::int64_t{plan_.attention_ranks} * bulk.slices * 12 *
                count_packets(plan_.local_experts()));
  bulk.expand = bulk_shape(plan_.row_bytes, prefix_table + barrier_bytes());
  bulk.receive_shared_bytes =
      bulk.expand.ring_bytes + 12 * bulk.expand.warps * bulk.expand.stages + prefix_table + 256;
  return bulk;
}

}  // namespace

int bulk_slices(const ExchangePlan& plan, const BucketRequest& request) {
  return BucketKernels(plan, request).bulk_plan().slices;
}

int packet_run(const ExchangePlan& plan, const BucketRequest& request) {
  const std::int64_t units = std::int64_t{plan.attention_ranks} * request.bucket;
  int best = kRunWords[0];
  double best_cost = 0;
  for (const int run : kRunWords) {
    const PacketShape source =
        packet_shape(plan.row_bytes, run, request.bucket, request.attention_sms);
    const PacketShape worker = packet_shape(plan.row_bytes, run, units, request.ffn_sms);
    const double cost = packet_cost(source, run, request.bucket) + packet_cost(worker, run, units);
    if (best_cost == 0 || cost < best_cost) {
      best = run;
      best_cost = cost;
    }
  }
  return best;
}

int dispatch_chunks(const ExchangePlan& plan, const BucketRequest& request) {
  const BucketKernels bucket(plan, request);
  if (request.protocol == Protocol::kBulk) {
    return bucket.bulk_plan().slices * bucket.bulk_plan().slice_flags();
  }
  return ceil_div(request.bucket, BucketKernels(plan, request).dispatch_chunk().chunk_rows);
}

int reply_chunks(const ExchangePlan& plan, const BucketRequest& request) {
  return ceil_div(request.bucket, BucketKernels(plan, request).reply_chunk().chunk_rows);
}

Result<std::vector<Kernel>> kernels_of(const ExchangePlan& plan, const BucketRequest& request) {
  const BucketKernels bucket(plan, request);
  const bool bulk = request.protocol == Protocol::kBulk;
  Result<Kernel> receive = bulk ? bucket.receive_bulk() : bucket.receive();
  if (!receive.ok()) return receive.failure();
  std::vector<Kernel> kernels{bulk ? bucket.dispatch_bulk() : bucket.dispatch(), *receive,
                              bulk && plan.top_k > 1 ? bucket.reply_bulk() : bucket.reply(),
                              bucket.collect()};
  if (plan.has_view && request.protocol != Protocol::kFlagInData)
    kernels.push_back(bucket.collect_view());
  return kernels;
}

std::vector<Signal> signals_of(const ExchangePlan& plan, Protocol protocol) {
  const bool packets = protocol == Protocol::kFlagInData;
  const SignalKind kind = packets ? SignalKind::kPacket : SignalKind::kReleaseFlag;
  const std::string replies = packets ? "reply_packets" : plan.has_view ? "view" : "replies";
  std::vector<Signal> signals;
  if (protocol == Protocol::kBulk) {
    signals.push_back(
        {"counts", SignalKind::kPacket, Role::kAttention, Role::kFfn, "counts", "counts", 0});
    signals.push_back({"choices", kind, Role::kAttention, Role::kFfn, "row_flags", "choices", 0});
  } else {
    signals.push_back(
        {"table", SignalKind::kPacket, Role::kAttention, Role::kFfn, "table", "table", 0});
  }
  signals.push_back({"rows", kind, Role::kAttention, Role::kFfn,
                     packets ? "row_packets" : "row_flags", packets ? "row_packets" : "rows", 0});
  signals.push_back({"replies", kind, Role::kFfn, Role::kAttention,
                     packets ? "reply_packets" : "reply_flags", replies, 0});
  signals.push_back({"done", SignalKind::kDoneWord, Role::kFfn, Role::kAttention, "done", "", 2});
  return signals;
}

}  // namespace afdep::plan
