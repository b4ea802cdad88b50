#include "tests/mutation/bulk_mutants.h"

#include <utility>

#include "tests/mutation/change_plan.h"

namespace afdep::mutation {
namespace {

constexpr const char* kSlice = "afdep/slice.cuh";
constexpr const char* kMail = "afdep/mail.cuh";

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
       {{"ffn_receive", "if (lane_index() == 0) fence_bulk_global();  // and that before",
         "// and that before"}});
  bulk("bulk_receive_fences_before_it_knows", Rule::kOrder,
       {{"ffn_receive", "sync_warp();                          // the lanes' acquires",
         "// the lanes' acquires"}});
  bulk(
      "bulk_dispatch_without_proxy_fence", Rule::kOrder,
      {{"attention_dispatch", "fence_bulk_global();  // whoever wrote x used ordinary stores", ""}},
      "x was written before the kernel began, which is as good as a fence");
  bulk("bulk_reply_without_proxy_fence", Rule::kOrder,
       {{"ffn_reply", "if (warp == cfg::kSumWarps) fence_bulk_global();", ""}},
       "the rows were written before the kernel began, which is as good as a fence");
  bulk("bulk_barriers_are_not_published", Rule::kOrder,
       {{"ffn_receive", "publish_barriers();", ""}});
  bulk("bulk_receive_fences_shared_memory", Rule::kOrder,
       {{"ffn_receive", "if (lane_index() == 0) fence_bulk_global();  // and that before",
         "if (lane_index() == 0) fence_bulk_shared();  // and that before"}});
  bulk("bulk_row_is_only_read", Rule::kOrder,
       {{"attention_dispatch", "        bulk_await<0>();\n", "        bulk_await_read<0>();\n"}});
  bulk("bulk_row_is_not_complete", Rule::kOrder,
       {{"attention_dispatch", "        bulk_await<0>();\n", "        bulk_await<1>();\n"}});
  bulk("bulk_flags_without_a_fence", Rule::kOrder, {{kMail, "    fence_flags();\n", ""}});
  bulk("bulk_mail_before_its_item", Rule::kOrder,
       {{kMail, "  box.item[slot] = item;\n  arrive_barrier(box.filled[slot]);",
         "  arrive_barrier(box.filled[slot]);\n  box.item[slot] = item;"}});
  bulk("bulk_mailbox_overflows", Rule::kOrder,
       {{kMail, "if (round > 0) await_barrier(", "if (round > 1000) await_barrier("}});
  bulk("bulk_mail_is_taken_unread", Rule::kOrder,
       {{kMail, "      const int item = box.item[slot];\n      arrive_barrier(box.emptied[slot]);",
         "      arrive_barrier(box.emptied[slot]);\n      const int item = box.item[slot];"}});
  bulk("bulk_mail_of_phase_zero", Rule::kOrder,
       {{kMail, "box.filled[filled % Box::kSlots], filled / Box::kSlots & 1u",
         "box.filled[filled % Box::kSlots], 0u"}});
  bulk("bulk_mail_flagged_before_the_fence", Rule::kOrder,
       {{kMail, "    fence_flags();\n    for (; taken != filled; ++taken) {",
         "    for (; taken != filled; ++taken) {"},
        {kMail, "        flag(item);\n      }\n    }",
         "        flag(item);\n      }\n    }\n    fence_flags();"}});
  bulk("bulk_dispatch_waits_for_phase_zero", Rule::kOrder,
       {{"attention_dispatch", "sent / cfg::kStages & 1u);", "0u);"}});
  bulk("bulk_receive_waits_for_phase_zero", Rule::kOrder,
       {{"ffn_receive", "stores / cfg::kStages & 1u);", "0u);"}});
  bulk("bulk_reply_waits_for_phase_zero", Rule::kOrder,
       {{"ffn_reply", "sums / cfg::kStages & 1u);", "0u);"}});
  bulk("bulk_dispatch_loads_a_stage_early", Rule::kOrder,
       {{"attention_dispatch",
         "        bulk_await<0>();\n        send_mail(shared.sent[warp], sent++, token);\n",
         "        send_mail(shared.sent[warp], sent++, token);\n"}});
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
  bulk("bulk_reply_is_flagged_without_sync_warp", Rule::kOrder,
       {{"ffn_reply", "sync_warp();  // all lanes' stores come before lane 0's arrival", ""}});
  bulk("bulk_reply_takes_units_twice", Rule::kSlot,
       {{"ffn_reply", "shared.next_unit = cfg::kSumWarps;", "shared.next_unit = 0;"}});
  bulk("bulk_shared_units_are_not_given_back", Rule::kReuse,
       {{"ffn_reply", "store_relaxed(&args.common.control->units_taken, 0);", ""}});
  bulk(
      "bulk_shared_units_are_taken_twice", Rule::kSlot,
      {{"ffn_receive", "if (lane_index() == 0) taken = take(&args.common.control->units_taken);",
        "if (lane_index() == 0) {\n      taken = load_relaxed(&args.common.control->units_taken);\n"
        "      store_relaxed(&args.common.control->units_taken, taken + 1);\n    }"}});
  bulk("bulk_first_shared_unit_is_owned", Rule::kSlot,
       {{"ffn_receive", "cfg::kOwnUnits * cfg::kBlocks + static_cast<int>(shuffle(taken, 0))",
         "cfg::kOwnUnits * cfg::kBlocks - 1 + static_cast<int>(shuffle(taken, 0))"}});
  bulk("bulk_last_shared_unit_is_forgotten", Rule::kData,
       {{"ffn_receive", "if (shared_number >= kNumbers) return kNoUnit;",
         "if (shared_number >= kNumbers - 1) return kNoUnit;"}});
  bulk("bulk_shared_choices_before_they_are_seen", Rule::kOrder,
       {{"ffn_receive", "sync_warp();  // the other lanes' choices", ""}});
  bulk("bulk_shared_choices_while_they_are_read", Rule::kOrder,
       {{"ffn_receive",
         "sync_warp();  // all lanes are done with the choices of the shared unit before", ""}});
  bulk("bulk_warps_have_one_shared_unit", Rule::kOrder,
       {{"ffn_receive", "const int own = cfg::kOwnUnits + warp;",
         "const int own = cfg::kOwnUnits;"}});
  bulk("bulk_numbers_skip_slices", Rule::kSlot,
       {{"ffn_receive", "unit.slice = (number + of_slice) % kSlices;",
         "unit.slice = (number + number) % kSlices;"}});
  bulk("bulk_receive_stores_to_rows_unseen", Rule::kOrder,
       {{"ffn_receive", "sync_warp();  // lane 0 sees where the row goes", ""}});
  bulk("bulk_rows_are_not_complete_at_the_end", Rule::kOrder,
       {{"ffn_receive", "if (lane_index() == 0) bulk_await<0>();  // the rows", "// the rows"}});
  bulk("bulk_counts_and_choices_are_not_awaited", Rule::kOrder,
       {{"afdep/packet.cuh", "await_packets(args, packets, from, wanted, generation, awaited);",
         "await_packets(args, packets, from, 0u, generation, awaited);\n    "
         "for (int j = 0; j < kBatch; ++j) {\n      if ((wanted >> j & 1u) != 0) packets[j] = "
         "load_packet(from[j]);\n    }"}});
  bulk("bulk_row_flag_of_the_generation_before", Rule::kGeneration,
       {{"afdep/exchange.cuh", "store_flag(reinterpret_cast<uint32_t*>(flag), generation);",
         "store_flag(reinterpret_cast<uint32_t*>(flag), generation - 1);"}});
  bulk("bulk_choices_of_another_generation", Rule::kGeneration,
       {{kSlice, "Packet p{{kNoChoice, kNoChoice, kNoChoice}, generation};",
         "Packet p{{kNoChoice, kNoChoice, kNoChoice}, generation + 2};"}});
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
  bulk("bulk_flag_of_the_next_row", Rule::kSlot,
       {{"attention_dispatch", "flags + token * 4,", "flags + (token + 1) * 4,"}});
  bulk("bulk_last_row_is_not_flagged", Rule::kSlot,
       {{"attention_dispatch", "send_mail(shared.sent[warp], sent++, token);",
         "if (token + cfg::kCopyWarps < tokens) send_mail(shared.sent[warp], sent++, token);"}});
  bulk("bulk_counts_before_the_sums", Rule::kOrder,
       {{"attention_dispatch", "  sync_block();\n\n", "\n"}});
  bulk("bulk_sums_before_the_ranks", Rule::kOrder,
       {{"attention_dispatch", "  sync_block();\n  sum_segments", "  sum_segments"}});
  bulk("bulk_counts_are_not_cleared", Rule::kData,
       {{"attention_dispatch", "clear_counts<cfg::kThreads>(shared.slice);", ""}});
  bulk("bulk_ranks_within_a_segment", Rule::kData,
       {{kSlice, "return packed + slice.before[i / Slice::kSegmentChoices][expert];",
         "return packed;"}});
  bulk("bulk_last_count_is_forgotten", Rule::kData,
       {{kSlice, "if (local >= kLocalExperts) continue;",
         "if (local >= kLocalExperts - 1) continue;"}});
  bulk("bulk_prefix_forgets_the_last_slice", Rule::kData,
       {{kSlice, "if (slice < Table::kSlices) rows += table.count[slice][expert];",
         "if (slice < Table::kSlices - 1) rows += table.count[slice][expert];"}});
  bulk("bulk_prefix_counts_itself", Rule::kData,
       {{kSlice, "static_cast<typename Table::Count>(rows);\n",
         "static_cast<typename Table::Count>(rows + here);\n"}});
  bulk("bulk_totals_before_the_parts", Rule::kOrder,
       {{"ffn_receive", "  sum_parts(shared.prefix);\n  sync_block();\n",
         "  sum_parts(shared.prefix);\n"}});
  bulk("bulk_rows_before_the_prefix", Rule::kOrder,
       {{"ffn_receive", "  sum_slices(shared.prefix);\n  sync_block();\n",
         "  sum_slices(shared.prefix);\n"}});
  bulk("bulk_counts_that_gave_up_are_read", Rule::kFault,
       {{kSlice, "pair == kNoPayload ? 0 : pair", "pair == kNoPayload + 1 ? 0 : pair"}});
}

}  // namespace afdep::mutation
