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
constexpr int kMaxTableBatch = 4;    // table packets of a lane in flight

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
  [[nodiscard]] Kernel reply() const;
  [[nodiscard]] Kernel collect() const;
  [[nodiscard]] Kernel collect_view() const;

  [[nodiscard]] ChunkShape dispatch_chunk() const {
    return chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms, kCopyLaneVectors);
  }
  [[nodiscard]] ChunkShape reply_chunk() const {
    ChunkShape shape = chunk_shape(plan_.row_bytes, units(), request_.ffn_sms, kSumLaneVectors);
    shape.chunk_rows = std::min(shape.chunk_rows, request_.bucket);
    return shape;
  }

 private:
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
  void set_chunk_shape(Kernel& kernel, int grid, Constants& constants) const;
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
  kernel.template_path =
      fmt::format("kernels/{}_{}.cu.in", to_string(operation), to_string(request_.protocol));
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
  kernel.register_ceiling = register_ceiling(bound);
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

void BucketKernels::set_chunk_shape(Kernel& kernel, int grid, Constants& constants) const {
  kernel.grid = grid;
  kernel.threads = kMaxThreads;
  kernel.register_ceiling = register_ceiling(kernel.threads);
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
    set_chunk_shape(kernel, chunk.grid, constants);
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
    chunk = chunk_shape(plan_.row_bytes, units(), request_.ffn_sms, kCopyLaneVectors);
    blocks = chunk.grid;
  } else {
    blocks = packets_for(units(), request_.ffn_sms).grid;
  }
  const std::int64_t own_units = ceil_div<std::int64_t>(units(), blocks);
  blocks = ceil_div<std::int64_t>(units(), own_units);
  if (chunked) {
    set_chunk_shape(kernel, static_cast<int>(blocks), constants);
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
    set_chunk_shape(kernel, chunk.grid, constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
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
    ChunkShape chunk =
        chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms, kSumLaneVectors);
    set_chunk_shape(kernel, chunk.grid, constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    constants.add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes");
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
  const ChunkShape chunk =
      chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms, kSumLaneVectors);
  set_chunk_shape(kernel, chunk.grid, constants);
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

}  // namespace

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
  return ceil_div(request.bucket, BucketKernels(plan, request).dispatch_chunk().chunk_rows);
}

int reply_chunks(const ExchangePlan& plan, const BucketRequest& request) {
  return ceil_div(request.bucket, BucketKernels(plan, request).reply_chunk().chunk_rows);
}

Result<std::vector<Kernel>> kernels_of(const ExchangePlan& plan, const BucketRequest& request) {
  const BucketKernels bucket(plan, request);
  Result<Kernel> receive = bucket.receive();
  if (!receive.ok()) return receive.failure();
  std::vector<Kernel> kernels{bucket.dispatch(), *receive, bucket.reply(), bucket.collect()};
  if (plan.has_view && request.protocol == Protocol::kChunked)
    kernels.push_back(bucket.collect_view());
  return kernels;
}

std::vector<Signal> signals_of(const ExchangePlan& plan, Protocol protocol) {
  const bool chunked = protocol == Protocol::kChunked;
  const SignalKind kind = chunked ? SignalKind::kReleaseFlag : SignalKind::kPacket;
  const std::string replies = !chunked ? "reply_packets" : plan.has_view ? "view" : "replies";
  return {
      {"table", SignalKind::kPacket, Role::kAttention, Role::kFfn, "table", "table", 0},
      {"rows", kind, Role::kAttention, Role::kFfn, chunked ? "row_flags" : "row_packets",
       chunked ? "rows" : "row_packets", 0},
      {"replies", kind, Role::kFfn, Role::kAttention, chunked ? "reply_flags" : "reply_packets",
       replies, 0},
      {"done", SignalKind::kDoneWord, Role::kFfn, Role::kAttention, "done", "", 2},
  };
}

}  // namespace afdep::plan
