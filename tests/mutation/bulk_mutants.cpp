#include "tests/mutation/bulk_mutants.h"

#include <utility>

#include "tests/mutation/change_plan.h"

namespace afdep::mutation {
namespace {

constexpr const char* kSlice = "afdep/slice.cuh";

}  // namespace

void add_bulk(std::vector<Mutant>& all) {
  using plan::ExchangePlan;
  const auto bulk = [&](const char* name, Rule rule, std::vector<Edit> edits,
                        const char* equivalent = "") {
    all.push_back({.name = name,
                   .rule = rule,
                   .edits = std::move(edits),
                   .victims = kBulk,
                   .equivalent = equivalent});
  };
  const auto bulk_plan = [&](const char* name, Rule rule, void (*change)(ExchangePlan&),
                             const char* equivalent = "") {
    all.push_back({.name = name,
                   .rule = rule,
                   .edits = {},
                   .change = change,
                   .victims = kBulk,
                   .equivalent = equivalent});
  };
  bulk("bulk_receive_without_proxy_fence", Rule::kOrder,
       {{"ffn_receive", "if (lane_index() == 0) fence_bulk();  // and that before",
         "// and that before"}});
  bulk("bulk_receive_fences_before_it_knows", Rule::kOrder,
       {{"ffn_receive", "sync_warp();                          // the lanes' acquires",
         "// the lanes' acquires"}});
  bulk("bulk_dispatch_without_proxy_fence", Rule::kOrder,
       {{"attention_dispatch", "fence_bulk();  // whoever wrote x used ordinary stores", ""}},
       "x was written before the kernel began, which is as good as a fence");
  bulk("bulk_reply_without_proxy_fence", Rule::kOrder,
       {{"ffn_reply", "fence_bulk();             // they used ordinary stores", ""}},
       "the rows were written before the kernel began, which is as good as a fence");
  bulk("bulk_barriers_are_not_published", Rule::kOrder,
       {{"ffn_receive", "publish_barriers();", ""}});
  bulk("bulk_last_rows_are_only_read", Rule::kOrder,
       {{"attention_dispatch", "if (lane_index() == 0) bulk_await<0>();",
         "if (lane_index() == 0) bulk_await_read<0>();"}});
  bulk("bulk_chunk_is_not_complete", Rule::kOrder,
       {{"attention_dispatch", "bulk_await<cfg::kChunkRows>();",
         "bulk_await<cfg::kChunkRows + 1>();"}});
  bulk("bulk_completion_is_lane_zero_s_alone", Rule::kOrder,
       {{"attention_dispatch",
         "sync_warp();                                           // and so for", "// and so for"}});
  bulk("bulk_row_flag_before_the_row", Rule::kOrder,
       {{"attention_dispatch", "      open |= mask;\n",
         "      open |= mask;\n      release_flags<cfg::kWorkers>(args.common, flags + (warp * "
         "cfg::kWarpChunks + chunk) * 4, mask, generation);\n"}});
  bulk("bulk_dispatch_waits_for_phase_zero", Rule::kOrder,
       {{"attention_dispatch", "static_cast<uint32_t>(i / cfg::kStages) & 1u);", "0u);"}});
  bulk("bulk_receive_waits_for_phase_zero", Rule::kOrder,
       {{"ffn_receive", "static_cast<uint32_t>(stores / cfg::kStages) & 1u);", "0u);"}});
  bulk("bulk_reply_waits_for_phase_zero", Rule::kOrder,
       {{"ffn_reply", "static_cast<uint32_t>(sums / cfg::kStages) & 1u);", "0u);"}});
  bulk("bulk_dispatch_loads_a_stage_early", Rule::kOrder,
       {{"attention_dispatch", "bulk_await_read<1>();", "bulk_await_read<2>();"}});
  bulk("bulk_receive_loads_a_stage_early", Rule::kOrder,
       {{"ffn_receive", "bulk_await_read<cfg::kStages - 1 - cfg::kLead>();",
         "bulk_await_read<cfg::kStages - cfg::kLead>();"}});
  bulk("bulk_reply_frees_a_stage_early", Rule::kOrder,
       {{"ffn_reply", "sync_warp();  // all lanes have read the stage", ""}});
  bulk("bulk_reply_overruns_its_ring", Rule::kOrder,
       {{"ffn_reply", "for (int i = 0; i < cfg::kStages; ++i) feed();",
         "for (int i = 0; i < cfg::kStages + 1; ++i) feed();"}});
  bulk("bulk_reply_reads_work_unseen", Rule::kOrder,
       {{"ffn_reply", "sync_warp();  // lane 0 has described the work", ""}});
  bulk("bulk_reply_flag_without_sync_warp", Rule::kOrder,
       {{"ffn_reply", "sync_warp();  // all lanes' stores come before the release below", ""}});
  bulk("bulk_rows_are_not_complete_at_the_end", Rule::kOrder,
       {{"ffn_receive", "if (lane_index() == 0) bulk_await<0>();  // the rows", "// the rows"}});
  bulk("bulk_choice_flag_without_a_barrier", Rule::kOrder,
       {{"attention_dispatch",
         "sync_block();  // all threads' stores come before the last warp's releases", ""}});
  bulk("bulk_choices_are_not_awaited", Rule::kOrder,
       {{"ffn_receive", "if (source >= cfg::kSources) continue;",
         "if (source >= cfg::kSources || generation != 0) {\n      shared.prefix.ready[slice] = "
         "1;\n      "
         "continue;\n    }"}});
  bulk("bulk_choice_flag_of_the_generation_before", Rule::kGeneration,
       {{"attention_dispatch",
         "args.common, choice_flag, ~uint64_t{0},\n                                 generation);",
         "args.common, choice_flag, ~uint64_t{0},\n                                 generation - "
         "1);"}});
  bulk("bulk_counts_of_another_generation", Rule::kGeneration,
       {{kSlice, "Packet p{{0, 0, 0}, generation};", "Packet p{{0, 0, 0}, generation + 2};"}});
  bulk("bulk_dispatch_does_not_wait_for_done", Rule::kReuse,
       {{"attention_dispatch",
         "await_all_done<cfg::kWorkers>(args.common, args.common.window + cfg::kDoneOffset, "
         "generation);",
         "static_cast<void>(cfg::kDoneOffset);"}});
  bulk_plan("bulk_one_half_for_the_counts", Rule::kReuse,
            [](ExchangePlan& plan) { set_all(plan, "kCountsHalfBytes", 0); });
  bulk_plan("bulk_one_half_for_the_choices", Rule::kReuse,
            [](ExchangePlan& plan) { set_all(plan, "kChoicesHalfBytes", 0); });
  bulk_plan(
      "bulk_one_half_for_the_rows", Rule::kReuse,
      [](ExchangePlan& plan) { set_all(plan, "kRowsHalfBytes", 0); },
      "a worker reads no row but those that it answers, and the source has collected the "
      "answers before it sends the next rows");
  bulk_plan("bulk_sources_share_the_counts", Rule::kSlot,
            [](ExchangePlan& plan) { set_all(plan, "kCountsSourceBytes", 0); });
  bulk("bulk_flag_of_the_next_chunk", Rule::kSlot,
       {{"attention_dispatch", "flags + (warp * cfg::kWarpChunks + chunk - 1) * 4",
         "flags + (warp * cfg::kWarpChunks + chunk) * 4"}});
  bulk("bulk_counts_before_the_sums", Rule::kOrder,
       {{"attention_dispatch", "  sync_block();\n\n", "\n"}});
  bulk("bulk_ranks_before_the_routes", Rule::kOrder,
       {{"attention_dispatch", "  sync_block();\n  rank_segment", "  rank_segment"}});
  bulk("bulk_counts_are_not_cleared", Rule::kData,
       {{"attention_dispatch", "clear_counts<cfg::kThreads>(shared.slice);", ""}});
  bulk("bulk_ranks_within_a_segment", Rule::kData,
       {{kSlice, "return packed + slice.before[i / Slice::kSegmentChoices][expert];",
         "return packed;"}});
  bulk("bulk_last_count_is_forgotten", Rule::kData,
       {{kSlice, "if (local >= kLocalExperts) continue;",
         "if (local >= kLocalExperts - 1) continue;"}});
  bulk("bulk_prefix_forgets_the_last_slice", Rule::kData,
       {{kSlice, "for (int slice = 0; slice < Table::kSlices; ++slice) {",
         "for (int slice = 0; slice < Table::kSlices - 1; ++slice) {"}});
  bulk("bulk_prefix_counts_itself", Rule::kData,
       {{kSlice, "table.own[own][expert] = rows;\n",
         "table.own[own][expert] = rows + table.count[slice][expert];\n"}});
  bulk("bulk_choices_that_gave_up_are_read", Rule::kFault,
       {{"ffn_receive", "const bool there = shared.prefix.ready[own_slice] != 0;",
         "const bool there = shared.prefix.ready[own_slice] != 2;"}});
}

}  // namespace afdep::mutation
