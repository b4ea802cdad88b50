// What a plan's ablations add: epilogues of their own, and steps through which all ranks meet.
#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "generator/plan/bucket_kernels.h"

namespace afdep::plan {
namespace {

bool takes_part(Operation operation) {
  return operation == Operation::kDispatch || operation == Operation::kReceive ||
         operation == Operation::kReply || operation == Operation::kCollect ||
         operation == Operation::kCollectView;
}

bool sends(Operation operation) {
  return operation == Operation::kDispatch || operation == Operation::kReply;
}

Part part_of(Operation operation) {
  return operation == Operation::kDispatch || operation == Operation::kReceive ? Part::kFirst
                                                                               : Part::kSecond;
}

// Of a step that must stay behind everything that the kernel awaits.
bool closes(const Step& step) {
  return step.kind == StepKind::kAdvanceGeneration || step.signal == "done";
}

std::vector<Step> meeting(std::string_view region, const char* publishes, const char* awaits) {
  return {publish(std::string(region), publishes), await(std::string(region), awaits)};
}

}  // namespace

Kernel BucketKernels::expand() const {
  Kernel kernel = start(Role::kFfn, Operation::kExpand);
  const bool chunked = !packets();
  Constants constants;
  constants.add("kBucket", request_.bucket, "tokens of one source at most")
      .add("kUnits", units(),
           fmt::format("{} sources x {} tokens", plan_.attention_ranks, request_.bucket))
      .add("kTopK", plan_.top_k, "choices of a token");
  if (chunked) {
    const ChunkShape chunk = chunk_shape(plan_.row_bytes, units(), request_.ffn_sms,
                                         kCopyLaneVectors, sum_threads() / 32);
    set_chunk_shape(kernel, chunk.grid, sum_threads(), constants);
    constants.add("kWarps", kernel.threads / 32, "a CTA")
        .add("kGridWarps", kernel.grid * kernel.threads / 32, fmt::format("{} CTAs", kernel.grid));
    add_lane_pieces(chunk, constants);
    constants.add("kPieces", chunk.pieces, "rounds of kLaneVectors that a row takes")
        .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    constants.add("kChunkRows", bulk() ? 1 : dispatch_chunk().chunk_rows,
                  "rows under one release flag");
    kernel.structure["trace"] = false;
  } else {
    const PacketShape shape = packets_for(units(), request_.ffn_sms);
    set_packet_shape(kernel, shape, /*with_groups=*/true, constants);
    constants.add("kGridGroups", shape.grid * shape.groups, fmt::format("{} CTAs", shape.grid))
        .add("kRowBytes", plan_.row_bytes, fmt::format("{} x bf16", plan_.hidden));
    add_row_packets(/*with_shares=*/true, constants);
  }
  const std::string_view rows = chunked ? "rows" : "row_packets";
  add_inbox(kernel, plan_.ffn, rows, "Rows", "Source", constants);
  constants.add(
      "kInboxRowBytes", region_of(plan_.ffn, rows).item_bytes,
      chunked ? "a raw row" : fmt::format("{} packets at most", row_packets(plan_.row_bytes)));
  if (chunked) add_inbox(kernel, plan_.ffn, "row_flags", "Flags", "Source", constants);
  add_offset(kernel, plan_.ffn, "unit_rows", "kUnitRowsOffset", constants);
  kernel.constants = constants.take();
  kernel.steps.push_back(
      step(StepKind::kCompute, "write each row once for each local expert that it chose"));
  return kernel;
}

Kernel BucketKernels::reduce() const {
  Kernel kernel = start(Role::kAttention, Operation::kReduce);
  Constants constants;
  add_sum_of_replies(kernel, constants);
  kernel.constants = constants.take();
  kernel.structure["trace"] = false;
  kernel.steps.push_back(
      step(StepKind::kCompute, kernel.structure.at("single_reply")
                                   ? "write each token's one reply"
                                   : "sum each token's replies in worker order"));
  return kernel;
}

Kernel BucketKernels::idle(Operation operation) const {
  const bool attention = operation == Operation::kIdleExpand;
  Kernel kernel = start(attention ? Role::kAttention : Role::kFfn, operation);
  kernel.template_path = "kernels/idle_epilogue.cu.in";
  Constants constants;
  set_chunk_shape(kernel, attention ? request_.attention_sms : request_.ffn_sms, sum_threads(),
                  constants);
  kernel.constants = constants.take();
  return kernel;
}

void BucketKernels::add_barrier_constants(const Kernel& kernel, Part part,
                                          Constants& constants) const {
  const RoleLayout& layout = kernel.role == Role::kAttention ? plan_.attention : plan_.ffn;
  const auto gate = [&](bool exit) {
    return region_of(layout, "gates").offset + gate_offset(part, exit);
  };
  const auto add_words = [&](std::string_view prefix, std::string_view name) {
    const Region& words = region_of(layout, name);
    constants
        .add(fmt::format("k{}Offset", prefix), words.offset,
             fmt::format("region {} of every rank's window", name))
        .add(fmt::format("k{}RankBytes", prefix), words.peer_bytes, "a word a rank");
  };
  if (plan_.ablation.entry_barrier) {
    add_words("Entry", entry_region(part));
    constants.add("kEntryGateOffset", gate(false), "region gates of the workspace");
  }
  if (!plan_.ablation.exit_barrier) return;
  add_words("Exit", exit_region(part));
  if (sends(kernel.operation)) {
    constants
        .add("kBlockGatesOffset", region_of(layout, "block_gates").offset,
             "region block_gates of the workspace")
        .add("kGridBlocks", kernel.grid, "CTAs");
  } else if (!plan_.ablation.separate_epilogues || kernel.operation == Operation::kCollectView) {
    constants.add("kExitGateOffset", gate(true), "region gates of the workspace");
  }
}

// Ranks that have rows for each other, or may have, need no counts: the others say "none".
void BucketKernels::add_no_rows_constants(const Kernel& kernel, Part part,
                                          Constants& constants) const {
  const RoleLayout& layout = kernel.role == Role::kAttention ? plan_.attention : plan_.ffn;
  const Region& inbox = region_of(layout, no_rows_region(part));
  const int sources = plan_.attention_ranks;
  const int ranks = plan_.ranks();
  const bool sender = sends(kernel.operation);
  // A sender's rows go to the other role, a receiver's come from it.
  const bool attention = kernel.role == Role::kAttention;
  const int own_first = attention ? 0 : sources;
  const int own_end = attention ? sources : ranks;
  constants
      .add("kNoRowsOffset", inbox.offset,
           fmt::format("region {} of every rank's window", inbox.name))
      .add("kNoRowsHalfBytes", inbox.half_bytes, "by generation parity")
      .add("kNoRowsRankBytes", inbox.peer_bytes,
           fmt::format("{} items of {} bytes", inbox.items, inbox.item_bytes))
      .add("kNoRowsPackets", inbox.items,
           part == Part::kFirst ? "counts of a rank's experts, six a packet" : "nothing to count")
      .add("kNoRowsToFirst", sender ? own_first : 0, "rank number that is told first")
      .add("kNoRowsToEnd", sender ? own_end : ranks,
           sender ? "rows go to the other role alone" : "this rank has no rows")
      .add("kNoRowsFromFirst", sender ? 0 : own_first, "rank number that is awaited first")
      .add("kNoRowsFromEnd", sender ? ranks : own_end,
           sender ? "nobody has rows for this rank" : "rows come from the other role alone");
}

void BucketKernels::ablate(Kernel& kernel) const {
  const Ablation& ablation = plan_.ablation;
  const bool part_kernel = takes_part(kernel.operation);
  kernel.structure["all_ranks"] = part_kernel && ablation.all_ranks();
  if (!part_kernel) return;
  kernel.structure["entry_barrier"] = ablation.entry_barrier;
  kernel.structure["exit_barrier"] = ablation.exit_barrier;
  kernel.structure["dummy_experts"] = ablation.dummy_experts;
  if (!sends(kernel.operation)) {
    // A view is read in place: it has no epilogue.
    kernel.structure["separate_epilogues"] =
        ablation.separate_epilogues && kernel.operation != Operation::kCollectView;
  }
  if (!ablation.all_ranks()) return;

  const Part part = part_of(kernel.operation);
  const bool attention = kernel.role == Role::kAttention;
  Constants constants;
  constants.add("kRanks", plan_.ranks(), "numbered attention first")
      .add("kOwnFirst", attention ? 0 : plan_.attention_ranks, "number of this role's first rank")
      .add("kPeerFirst", attention ? plan_.attention_ranks : 0, "number of the other role's");
  add_barrier_constants(kernel, part, constants);
  if (ablation.dummy_experts) add_no_rows_constants(kernel, part, constants);
  const std::vector<Constant> added = constants.take();
  kernel.constants.insert(kernel.constants.end(), added.begin(), added.end());
  kernel.grid_sync = ablation.entry_barrier || ablation.exit_barrier;

  std::vector<Step> begin;
  const auto append = [](std::vector<Step>& to, const std::vector<Step>& steps) {
    to.insert(to.end(), steps.begin(), steps.end());
  };
  if (ablation.entry_barrier) {
    append(begin, meeting(entry_region(part), "tell every rank that this one has come",
                          "wait until every rank has come"));
  }
  const std::string no_rows(no_rows_region(part));
  if (ablation.dummy_experts) {
    begin.push_back(publish(no_rows, "say \"no rows\" to the ranks that get none"));
  }
  std::vector<Step> end;
  if (ablation.dummy_experts) {
    end.push_back(await(no_rows, "wait for the ranks that have no rows for this one"));
  }
  std::vector<Step> exit;
  if (ablation.exit_barrier) {
    exit = meeting(exit_region(part), "tell every rank that this one has sent all",
                   "wait until every rank has sent all");
  }
  // What comes first: the kernel before, release of the next one, then the entry.
  std::vector<Step> steps(kernel.steps.begin(), kernel.steps.begin() + 2);
  append(steps, begin);
  std::vector<Step> closing;
  bool read_behind_exit = sends(kernel.operation);  // true: nothing left to put in between
  for (auto step = kernel.steps.begin() + 2; step != kernel.steps.end(); ++step) {
    if (closes(*step)) {
      if (step->kind == StepKind::kAwait) {
        steps.push_back(*step);
      } else {
        closing.push_back(*step);
      }
      continue;
    }
    if (!read_behind_exit && step->kind == StepKind::kAwait &&
        (step->signal == "rows" || step->signal == "replies")) {
      append(steps, exit);
      read_behind_exit = true;
    }
    steps.push_back(*step);
  }
  append(steps, end);
  if (sends(kernel.operation)) append(steps, exit);
  append(steps, closing);
  kernel.steps = std::move(steps);
}

}  // namespace afdep::plan
