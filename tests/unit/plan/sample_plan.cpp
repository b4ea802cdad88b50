#include "tests/unit/plan/sample_plan.h"

#include <algorithm>

namespace afdep::plan::testing {
namespace {

constexpr int kChunkRows = 4;

void add_region(std::vector<Region>& regions, std::int64_t& end, Region region) {
  region.offset = end;
  region.peer_bytes = (region.items * region.item_bytes + 255) / 256 * 256;
  region.half_bytes = region.peers * region.peer_bytes;
  end += region.bytes();
  regions.push_back(std::move(region));
}

Region region_of(std::string name, int halves, int peers, std::int64_t items,
                 std::int64_t item_bytes, std::string purpose) {
  Region region;
  region.name = std::move(name);
  region.halves = halves;
  region.peers = peers;
  region.items = items;
  region.item_bytes = item_bytes;
  region.purpose = std::move(purpose);
  return region;
}

void add_layouts(ExchangePlan& plan, const SampleSize& size) {
  const int chunks = (size.chunked_bucket + kChunkRows - 1) / kChunkRows;
  const std::int64_t packet_row_bytes = (plan.row_bytes + 11) / 12 * 16;
  const int slots = std::min(plan.ffn_ranks, plan.top_k);
  plan.attention.role = Role::kAttention;
  auto& attention = plan.attention.window;
  std::int64_t end = 0;
  add_region(attention, end, region_of("done", 1, 1, plan.ffn_ranks, 4, "a word a worker"));
  add_region(attention, end,
             region_of("reply_packets", 2, slots, size.packet_bucket, packet_row_bytes,
                       "replies, a block a reply slot, an item a token"));
  if (plan.has_view) {
    add_region(attention, end,
               region_of("view", 1, 1, plan.capacity, plan.row_bytes, "replies read in place"));
  } else {
    add_region(attention, end,
               region_of("replies", 2, slots, size.chunked_bucket, plan.row_bytes,
                         "replies, a block a reply slot, an item a token"));
  }
  add_region(attention, end,
             region_of("reply_flags", 2, plan.ffn_ranks, chunks, 4, "a word a worker and chunk"));
  plan.attention.window_bytes = end;
  end = 0;
  add_region(plan.attention.workspace, end,
             region_of("destinations", 1, 1, plan.capacity, 8, "a mask of workers a token"));
  plan.attention.workspace_bytes = end;

  plan.ffn.role = Role::kFfn;
  auto& ffn = plan.ffn.window;
  end = 0;
  add_region(ffn, end,
             region_of("table", 2, plan.attention_ranks, plan.capacity, (plan.top_k + 1) / 2 * 16,
                       "top-k tables, a block a source, two choices a packet"));
  add_region(ffn, end,
             region_of("row_packets", 2, plan.attention_ranks, size.packet_bucket, packet_row_bytes,
                       "rows, a block a source, an item a token"));
  add_region(ffn, end,
             region_of("rows", 2, plan.attention_ranks, size.chunked_bucket, plan.row_bytes,
                       "rows, a block a source, an item a token"));
  add_region(
      ffn, end,
      region_of("row_flags", 2, plan.attention_ranks, chunks, 4, "a word a source and chunk"));
  plan.ffn.window_bytes = end;
  end = 0;
  add_region(
      plan.ffn.workspace, end,
      region_of("unit_rows", 1, 1, static_cast<std::int64_t>(plan.attention_ranks) * plan.capacity,
                4 * plan.top_k, "rows of a (source, token) unit"));
  plan.ffn.workspace_bytes = end;
  plan.window_bytes = std::max(plan.attention.window_bytes, plan.ffn.window_bytes);
}

Kernel kernel_of(const ExchangePlan& plan, const BucketPlan& bucket, Operation operation,
                 std::vector<Step> steps) {
  Kernel kernel;
  kernel.operation = operation;
  const bool ffn = operation == Operation::kReceive || operation == Operation::kReply;
  kernel.role = ffn ? Role::kFfn : Role::kAttention;
  kernel.protocol = bucket.protocol;
  kernel.bucket = bucket.bucket;
  const std::string name(to_string(operation));
  kernel.symbol = "afdep_" + plan.name + "_" + name + "_b" + std::to_string(bucket.bucket);
  kernel.template_path =
      "kernels/" + name + "_" + std::string(to_string(bucket.protocol)) + ".cu.in";
  kernel.grid = ffn ? 24 : 8;
  kernel.threads = 384;
  kernel.register_ceiling = 168;
  kernel.shared_bytes = operation == Operation::kReceive ? 4096 : 0;
  kernel.constants = {{"kTopK", plan.top_k, "choices a token"},
                      {"kRowBytes", plan.row_bytes, std::to_string(plan.hidden) + " x bf16"}};
  kernel.structure = {{"has_view", plan.has_view}, {"spelled", true}};
  kernel.steps = {{StepKind::kAwaitPreviousKernel, "", "the kernel before this one"},
                  {StepKind::kReleaseNextKernel, "", "the next kernel may become resident"}};
  kernel.steps.insert(kernel.steps.end(), steps.begin(), steps.end());
  return kernel;
}

BucketPlan bucket_of(const ExchangePlan& plan, int size, Protocol protocol) {
  BucketPlan bucket;
  bucket.bucket = size;
  bucket.protocol = protocol;
  const bool packets = protocol == Protocol::kFlagInData;
  const SignalKind kind = packets ? SignalKind::kPacket : SignalKind::kReleaseFlag;
  const std::string rows = packets ? "row_packets" : "rows";
  const std::string replies = packets ? "reply_packets" : plan.has_view ? "view" : "replies";
  bucket.signals = {
      {"table", SignalKind::kPacket, Role::kAttention, Role::kFfn, "table", "table", 0},
      {"rows", kind, Role::kAttention, Role::kFfn, packets ? rows : "row_flags", rows, 0},
      {"replies", kind, Role::kFfn, Role::kAttention, packets ? replies : "reply_flags", replies,
       0},
      {"done", SignalKind::kDoneWord, Role::kFfn, Role::kAttention, "done", "", 2},
  };
  const auto await = [](const char* signal) {
    return Step{StepKind::kAwait, signal, std::string("wait for ") + signal};
  };
  const auto publish = [](const char* signal) {
    return Step{StepKind::kPublish, signal, std::string("send ") + signal};
  };
  const auto compute = [](const char* text) { return Step{StepKind::kCompute, "", text}; };
  bucket.kernels = {
      kernel_of(plan, bucket, Operation::kDispatch,
                {await("done"), publish("table"), publish("rows")}),
      kernel_of(plan, bucket, Operation::kReceive,
                {await("table"), compute("rank the ids"), await("rows"), compute("expand")}),
      kernel_of(plan, bucket, Operation::kReply,
                {publish("done"), compute("sum each token's rows"), publish("replies")}),
      kernel_of(plan, bucket, Operation::kCollect, {await("replies"), compute("sum the replies")}),
  };
  if (plan.has_view && !packets) {
    bucket.kernels.push_back(kernel_of(plan, bucket, Operation::kCollectView, {await("replies")}));
  }
  bucket.critical_path = {{Operation::kDispatch, Operation::kReceive, "rows"},
                          {Operation::kReply, Operation::kCollect, "replies"}};
  const double row_bytes = plan.row_bytes;
  bucket.traffic.dispatch_wire_bytes = size * row_bytes * plan.ffn_ranks;
  bucket.traffic.reply_wire_bytes = size * row_bytes * plan.attention_ranks;
  bucket.traffic.worker_memory_bytes = 4 * size * row_bytes * plan.attention_ranks;
  bucket.traffic.source_memory_bytes = 2 * size * row_bytes * (1 + plan.ffn_ranks);
  bucket.floor = {0.94, 1.72, 0.25};
  return bucket;
}

}  // namespace

ExchangePlan sample_plan(const SampleSize& size) {
  ExchangePlan plan;
  plan.name = "sample";
  plan.spec_digest = "00112233445566778899aabbccddeeff";
  plan.attention_ranks = size.attention_ranks;
  plan.ffn_ranks = size.ffn_ranks;
  plan.hidden = size.hidden;
  plan.experts = size.experts;
  plan.top_k = size.top_k;
  plan.row_bytes = 2 * size.hidden;
  plan.capacity = size.chunked_bucket;
  plan.has_view = size.ffn_ranks == 1;
  plan.arches = {Arch::kSm90a, Arch::kSm100a};
  plan.device_timeout_ms = 30000;
  plan.host_timeout_ms = 120000;
  add_layouts(plan, size);
  plan.buckets = {bucket_of(plan, size.packet_bucket, Protocol::kFlagInData),
                  bucket_of(plan, size.chunked_bucket, Protocol::kChunked)};
  return plan;
}

}  // namespace afdep::plan::testing
