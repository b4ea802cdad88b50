#include "tests/mutation/barrier_mutants.h"

#include <utility>

#include "tests/mutation/change_plan.h"

namespace afdep::mutation {
namespace {

constexpr const char* kBarrier = "afdep/barrier.cuh";

}  // namespace

void add_barrier(std::vector<Mutant>& all) {
  using plan::ExchangePlan;
  const auto barrier = [&](const char* name, Rule rule, std::vector<Edit> edits,
                           const char* equivalent = "") {
    all.push_back({.name = name,
                   .rule = rule,
                   .edits = std::move(edits),
                   .victims = kReverted,
                   .equivalent = equivalent});
  };
  const auto barrier_plan = [&](const char* name, Rule rule, void (*change)(ExchangePlan&),
                                const char* equivalent = "") {
    all.push_back({.name = name,
                   .rule = rule,
                   .edits = {},
                   .change = change,
                   .victims = kReverted,
                   .equivalent = equivalent});
  };
  const char* const send =
      "    release_flag(Group::window(args, rank) + words + own * word_bytes, generation);";
  const char* const await =
      "    await_flag_at(args, args.window + words + rank * word_bytes, generation,\n"
      "                  {phase, static_cast<uint32_t>(rank), part});";
  // ---- between ranks ----
  barrier("barrier_is_not_awaited", Rule::kOrder,
          {{kBarrier, await,
            "    if (generation != 0) continue;\n"
            "    await_flag_at(args, args.window + words + rank * word_bytes, generation,\n"
            "                  {phase, static_cast<uint32_t>(rank), part});"}});
  barrier("barrier_awaits_attention_only", Rule::kOrder,
          {{kBarrier, await,
            "    if (rank >= Group::kRanks / 2) continue;\n"
            "    await_flag_at(args, args.window + words + rank * word_bytes, generation,\n"
            "                  {phase, static_cast<uint32_t>(rank), part});"}});
  barrier("barrier_awaits_itself", Rule::kOrder,
          {{kBarrier, "    if (rank == own) continue;\n    await_flag_at", "    await_flag_at"}});
  barrier("barrier_tells_the_own_role_only", Rule::kOrder,
          {{kBarrier, "    if (rank == own) continue;\n    release_flag",
            "    if (rank / 2 != own / 2 || rank == own) continue;\n    release_flag"}});
  barrier("barrier_words_in_the_next_rank_s_place", Rule::kSlot,
          {{kBarrier, "words + own * word_bytes, generation);",
            "words + (own ^ 1) * word_bytes, generation);"}});
  barrier("barrier_words_of_the_generation_before", Rule::kGeneration,
          {{kBarrier, "words + own * word_bytes, generation);",
            "words + own * word_bytes, previous_generation(generation));"}});
  barrier("barrier_takes_an_old_generation", Rule::kGeneration,
          {{kBarrier, await,
            "    if (load_acquire(reinterpret_cast<const uint32_t*>(args.window + words + rank * "
            "word_bytes)) != 0) continue;\n"
            "    await_flag_at(args, args.window + words + rank * word_bytes, generation,\n"
            "                  {phase, static_cast<uint32_t>(rank), part});"}});
  barrier("barrier_words_are_released_to_one_gpu", Rule::kOrder,
          {{kBarrier, send,
            "    store_release_here(reinterpret_cast<uint32_t*>(Group::window(args, rank) + words "
            "+ own * word_bytes), generation);"}});
  barrier("barrier_words_are_relaxed", Rule::kOrder,
          {{kBarrier, send,
            "    afdep_emu_store_relaxed(Group::window(args, rank) + words + own * word_bytes, "
            "generation, AFDEP_EMU_SYSTEM_SCOPE);"}});
  barrier("no_sync_warp_after_the_barrier", Rule::kOrder,
          {{kBarrier, "  sync_warp();  // what comes later comes after all lanes' acquires\n", ""}},
          "a sync_block or the end of the kernel follows wherever ranks meet");
  barrier_plan("entry_and_exit_share_their_words", Rule::kReuse, [](ExchangePlan& plan) {
    for_each_constant(plan, "kExitOffset", [](plan::Kernel& kernel, plan::Constant& exit) {
      for (const plan::Constant& each : kernel.constants) {
        if (each.name == "kEntryOffset") exit.value = each.value;
      }
    });
  });
  // ---- between blocks ----
  barrier("the_gate_is_not_opened", Rule::kOrder,
          {{kBarrier,
            "    if (thread_index() == 0) detail::open_gate(args.workspace + gate, generation);\n",
            ""}});
  barrier("the_gate_is_not_awaited", Rule::kOrder,
          {{kBarrier,
            "    if (thread_index() == 0) detail::await_block(args, args.workspace + gate, "
            "generation, 0);\n",
            ""}});
  barrier("the_gate_opens_before_the_ranks_have_met", Rule::kOrder,
          {{kBarrier,
            "    if (warp_index() == 0) detail::meet<Group>(args, words, word_bytes, generation, "
            "phase, part);\n    sync_block();\n",
            "    if (thread_index() == 0) detail::open_gate(args.workspace + gate, generation);\n  "
            "  if (warp_index() == 0) detail::meet<Group>(args, words, word_bytes, generation, "
            "phase, part);\n    sync_block();\n"}});
  barrier("the_gate_is_relaxed", Rule::kOrder,
          {{kBarrier, "  store_release_here(reinterpret_cast<uint32_t*>(word), generation);",
            "  afdep_emu_store_relaxed(word, generation, AFDEP_EMU_SYSTEM_SCOPE);"}});
  barrier("blocks_are_not_acquired", Rule::kOrder,
          {{kBarrier, "seen = load_acquire_here(flag);",
            "seen = afdep_emu_load_relaxed(flag, AFDEP_EMU_SYSTEM_SCOPE);"}});
  barrier("blocks_give_up_before_ranks", Rule::kFault, {{kBarrier, "give_up<2>", "give_up<1>"}});
  barrier("no_block_says_that_it_is_through", Rule::kOrder,
          {{kBarrier,
            "      detail::open_gate(args.workspace + gates + block_index() * kGateBytes, "
            "generation);\n",
            ""}});
  barrier("the_last_block_is_not_awaited", Rule::kOrder,
          {{kBarrier, "block < kBlocks; block += 32", "block < kBlocks - 1; block += 32"}});
  barrier("blocks_leave_before_their_last_store", Rule::kOrder,
          {{kBarrier, "  sync_block();  // all stores of the block come before the release below\n",
            ""}});
  barrier("blocks_share_a_gate", Rule::kSlot,
          {{kBarrier, "constexpr int kGateBytes = 16;", "constexpr int kGateBytes = 0;"}});
  barrier("ranks_meet_before_the_blocks_are_through", Rule::kOrder,
          {{kBarrier, "  sync_warp();  // and all stores of the other blocks\n", ""}});
  // ---- counts of no rows ----
  barrier("no_rows_are_not_announced", Rule::kData,
          {{kBarrier, "    store_packet(\n        Group::window",
            "    if (generation == 0) store_packet(\n        Group::window"}});
  barrier("no_rows_are_not_awaited", Rule::kData,
          {{kBarrier,
            "i < (kEnd - kFirst) * kPackets; i += 32) {\n    const int rank = kFirst + i / "
            "kPackets;\n    if (rank == own) continue;\n    await_packet",
            "i < 0; i += 32) {\n    const int rank = kFirst + i / kPackets;\n    if (rank == own) "
            "continue;\n    await_packet"}});
  barrier("the_last_packet_of_no_rows_is_not_sent", Rule::kData,
          {{kBarrier,
            "i < (kEnd - kFirst) * kPackets; i += 32) {\n    const int rank = kFirst + i / "
            "kPackets;\n    if (rank == own) continue;\n    store_packet",
            "i < (kEnd - kFirst) * kPackets - 1; i += 32) {\n    const int rank = kFirst + i / "
            "kPackets;\n    if (rank == own) continue;\n    store_packet"}});
  barrier_plan(
      "one_half_for_no_rows", Rule::kReuse,
      [](ExchangePlan& plan) { set_all(plan, "kNoRowsHalfBytes", 0); },
      "whoever sends counts of the next exchange has been through the second part of this "
      "one, which every rank enters only after it has read the counts of the first");
}

}  // namespace afdep::mutation
