// The mistakes. Each changes what a kernel does on some schedule, or says why it does not.
#include "tests/mutation/barrier_mutants.h"
#include "tests/mutation/bulk_mutants.h"
#include "tests/mutation/change_plan.h"
#include "tests/mutation/early_mutants.h"
#include "tests/mutation/mutant.h"

namespace afdep::mutation {
namespace {

constexpr const char* kGeneration = "afdep/generation.h";
constexpr const char* kWait = "afdep/wait.cuh";
constexpr const char* kPacket = "afdep/packet.cuh";
constexpr const char* kRow = "afdep/row.cuh";
constexpr const char* kRank = "afdep/rank.cuh";
constexpr const char* kRoute = "afdep/route.cuh";
constexpr const char* kExchange = "afdep/exchange.cuh";
constexpr const char* kTable = "afdep/table.cuh";

std::vector<Mutant> make() {
  using plan::ExchangePlan;
  using plan::Operation;
  std::vector<Mutant> all;
  const auto add = [&all](Mutant mutant) { all.push_back(std::move(mutant)); };

  // ---- rule 1: generations --------------------------------------------------------------------
  add({.name = "packets_match_by_parity",
       .rule = Rule::kGeneration,
       .edits = {{kPacket, "packets[i].generation != generation",
                  "((packets[i].generation ^ generation) & 1u) != 0"},
                 {kRow, "look.packet[q].generation != generation",
                  "((look.packet[q].generation ^ generation) & 1u) != 0"}}});
  add({.name = "packets_match_if_not_zero",
       .rule = Rule::kGeneration,
       .edits = {
           {kPacket, "packets[i].generation != generation", "packets[i].generation == 0"},
           {kRow, "look.packet[q].generation != generation", "look.packet[q].generation == 0"}}});
  add({.name = "flags_match_by_parity",
       .rule = Rule::kGeneration,
       .edits = {
           {kWait, "while (seen != generation) {", "while (((seen ^ generation) & 1u) != 0) {"}}});
  add({.name = "first_look_at_a_row_is_believed",
       .rule = Rule::kGeneration,
       .edits = {
           {kRow, "look.packet[q].generation != generation", "look.packet[q].generation == 0"}}});
  add({.name = "wait_for_any_newer_flag",
       .rule = Rule::kGeneration,
       .edits = {{kWait, "while (seen != generation) {", "while (seen < generation) {"}}});
  add({.name = "no_wrap_of_generations",
       .rule = Rule::kGeneration,
       .edits = {{kGeneration, "return generation == kLastGeneration ? 1u : generation + 1u;",
                  "return generation + 1u;"}}});
  add({.name = "wrap_to_zero",
       .rule = Rule::kGeneration,
       .edits = {{kGeneration,
                  "generation == kLastGeneration ? 1u :", "generation == kLastGeneration ? 0u :"},
                 {kGeneration, "generation == 1u ? kLastGeneration",
                  "generation == 0u ? kLastGeneration"}}});
  add({.name = "generation_off_by_one_in_collect",
       .rule = Rule::kGeneration,
       .edits = {{"attention_collect", "= started_generation(args.common);",
                  "= started_generation(args.common) + 1;"}}});
  add({.name = "other_half_in_receive",
       .rule = Rule::kGeneration,
       .edits = {
           {"ffn_receive", "half = half_of(generation);", "half = 1 - half_of(generation);"}}});
  add({.name = "collect_does_not_finish_the_generation",
       .rule = Rule::kGeneration,
       .edits = {{"attention_collect", "mark_finished(args.common, generation);",
                  "if (generation == 0) mark_finished(args.common, generation);"}}});
  add({.name = "reply_sends_an_old_generation",
       .rule = Rule::kGeneration,
       .edits = {{"ffn_reply_b", "part, generation);  // awaited by collect",
                  "part, generation - 2);  // awaited by collect"}}});

  // ---- rule 2: slots --------------------------------------------------------------------------
  add({.name = "rows_in_reverse_slots",
       .rule = Rule::kSlot,
       .edits = {{"attention_dispatch", "rows + token * cfg::kInboxRowBytes",
                  "rows + (cfg::kBucket - 1 - token) * cfg::kInboxRowBytes"}}});
  add({.name = "rows_of_other_tokens",
       .rule = Rule::kSlot,
       .edits = {{"attention_dispatch", "x + static_cast<int64_t>(token) * cfg::kRowBytes",
                  "x + static_cast<int64_t>(tokens - 1 - token) * cfg::kRowBytes"}}});
  add({.name = "table_entries_one_slot_on",
       .rule = Rule::kSlot,
       .edits = {{"attention_dispatch", "table + token * cfg::kEntryBytes",
                  "table + (token + 1) % cfg::kBucket * cfg::kEntryBytes"}}});
  add({.name = "replies_all_in_slot_zero",
       .rule = Rule::kSlot,
       .edits = {{"ffn_reply", "const uint32_t slot = args.common.index;",
                  "const uint32_t slot = args.common.index * 0;"}}});
  add({.name = "reply_slot_of_the_next_worker",
       .rule = Rule::kSlot,
       .edits = {{"ffn_receive", ".before(static_cast<int>(args.common.index)))",
                  ".before(static_cast<int>(args.common.index)) ^ 1)"}},
       .victims = kSlots});
  add({.name = "collect_reads_slots_backwards",
       .rule = Rule::kSlot,
       .edits = {{kRow, "const int slot = kBySlot ? next_slot :",
                  "const int slot = kBySlot ? 1 - next_slot :"}},
       .victims = kSlots});
  add({.name = "sources_share_the_table",
       .rule = Rule::kSlot,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kTableSourceBytes", 0); }});
  add({.name = "sources_share_the_rows",
       .rule = Rule::kSlot,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kRowsSourceBytes", 0); }});
  add({.name = "workers_share_the_replies",
       .rule = Rule::kSlot,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kRepliesSlotBytes", 0); }});
  add({.name = "workers_share_the_reply_flags",
       .rule = Rule::kSlot,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kFlagsWorkerBytes", 0); }});
  add({.name = "sources_share_the_row_flags",
       .rule = Rule::kSlot,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kFlagsSourceBytes", 0); }});

  // ---- rule 3: reuse needs proof --------------------------------------------------------------
  add({.name = "dispatch_does_not_wait_for_done",
       .rule = Rule::kReuse,
       .edits = {{kExchange, "for (int peer = lane_index(); peer < kPeers; peer += 32) {",
                  "for (int peer = lane_index(); peer < kPeers * 0; peer += 32) {"},
                 {kExchange, "if (peer < kPeers && !is_done(", "if (peer < 0 && !is_done("}}});
  add({.name = "done_words_are_not_sent",
       .rule = Rule::kReuse,
       .edits = {{"ffn_reply", "for (int source = thread_index(); source < cfg::kSources;",
                  "for (int source = thread_index(); source < cfg::kSources * 0;"}}});
  add({.name = "first_source_gets_no_done_word",
       .rule = Rule::kReuse,
       .edits = {{"ffn_reply", "for (int source = thread_index(); source < cfg::kSources;",
                  "for (int source = thread_index() + 1; source < cfg::kSources;"}}});
  add({.name = "done_before_received",
       .rule = Rule::kReuse,
       .edits = {{"ffn_receive", "  const uint32_t half = half_of(generation);\n",
                  "  const uint32_t half = half_of(generation);\n"
                  "  if (block_index() == 0 && thread_index() < cfg::kSources) {\n"
                  "    release_flag(args.common.peer[thread_index()] + args.common.index * 4, "
                  "generation);\n  }\n"}}});
  add({.name = "done_a_generation_early",
       .rule = Rule::kReuse,
       .edits = {{"ffn_reply", "cfg::kDoneOffset + args.common.index * 4, generation);",
                  "cfg::kDoneOffset + args.common.index * 4, next_generation(generation));"}}});
  add({.name = "done_words_for_the_wrong_worker",
       .rule = Rule::kReuse,
       .edits = {{"ffn_reply", "cfg::kDoneOffset + args.common.index * 4",
                  "cfg::kDoneOffset + (args.common.index ^ 1) * 4"}}});
  add({.name = "only_the_oldest_done_word_counts",
       .rule = Rule::kReuse,
       .edits = {{kWait, " || seen == newest || seen == generation;", ";"}}});
  add({.name = "own_done_word_is_not_enough",
       .rule = Rule::kReuse,
       .edits = {{kWait, "|| seen == newest || seen == generation;", "|| seen == newest;"}},
       .victims = kWide});
  add({.name = "one_half_for_the_table",
       .rule = Rule::kReuse,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kTableHalfBytes", 0); }});
  add({.name = "one_half_for_the_rows",
       .rule = Rule::kReuse,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kRowsHalfBytes", 0); },
       .victims = kEarly});
  add({.name = "one_half_for_the_row_flags",
       .rule = Rule::kReuse,
       .edits = {},
       .change =
           [](ExchangePlan& plan) {
             set_in(plan, Operation::kDispatch, "kFlagsHalfBytes", 0);
             set_in(plan, Operation::kReceive, "kFlagsHalfBytes", 0);
           },
       .equivalent = "a worker looks at the flag of a row that it got, and has replied to that row "
                     "before the source sends another"});
  add({.name = "one_half_for_the_replies",
       .rule = Rule::kReuse,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kRepliesHalfBytes", 0); },
       .equivalent =
           "a worker writes replies of g + 1 only after it has seen the source's table of g + 1, "
           "which the source sent after its collect of g had ended: the view has one half too"});
  add({.name = "row_flags_are_lapped",
       .rule = Rule::kReuse,
       .edits = {{"attention_dispatch_b", "flags + chunk * 4, generation);  // awaited by receive",
                  "flags + chunk * 4, generation);\n      release_flag(args.common.peer[worker] + "
                  "flags + chunk * 4, next_generation(next_generation(generation)));"}}});
  add({.name = "reply_flags_are_lapped",
       .rule = Rule::kReuse,
       .edits = {{"ffn_reply_b", "source_chunk * 4,\n                   generation);",
                  "source_chunk * 4,\n                   generation);\n"
                  "      release_flag(window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes +\n"
                  "                       args.common.index * cfg::kFlagsWorkerBytes + "
                  "source_chunk * 4,\n"
                  "                   next_generation(next_generation(generation)));"}}});
  add({.name = "halves_do_not_alternate",
       .rule = Rule::kReuse,
       .edits = {{kGeneration, "return generation & 1u;", "return generation & 0u;"}}});

  // ---- rule 4: faults -------------------------------------------------------------------------
  add({.name = "waits_are_unbounded",
       .rule = Rule::kFault,
       .edits = {{kWait, "if (now - deadline.start_ns < args.timeout_ns * kPatience) return false;",
                  "if (now - deadline.start_ns < args.timeout_ns * kPatience * 1000000) return "
                  "false;"}}});
  add({.name = "expired_waits_leave_no_record",
       .rule = Rule::kFault,
       .edits = {{kWait, "if (claim(&args.control->abort)) {",
                  "if (claim(&args.control->abort) && generation == 0) {"}}});
  add({.name = "the_record_names_another_peer",
       .rule = Rule::kFault,
       .edits = {{kWait, "store_word(&fault->peer, awaited.peer);",
                  "store_word(&fault->peer, awaited.peer + 1);"}}});
  add({.name = "the_record_is_not_published",
       .rule = Rule::kFault,
       .edits = {{kWait,
                  "store_release(&fault->state, 2);  // pairs with the host's acquire\n  }\n"
                  "  return true;",
                  "}\n  return true;"}}});
  add({.name = "the_record_is_published_to_one_gpu",
       .rule = Rule::kFault,
       .edits = {
           {kWait, "store_release(&fault->state, 2);", "store_release_here(&fault->state, 2);"}}});
  add({.name = "no_look_at_the_abort_word",
       .rule = Rule::kFault,
       .edits = {{kWait, "if (load_abort(&args.control->abort) != 0) return true;", ""}}});
  add({.name = "route_faults_are_not_reported",
       .rule = Rule::kFault,
       .edits = {{kRoute, "if (__builtin_expect(bad, 0)) {\n      report_route(",
                  "if (bad && given == 0) {\n      report_route("}}});
  add({.name = "a_failed_packet_reads_as_expert_zero",
       .rule = Rule::kFault,
       .edits = {{kPacket, "packets[i] = Packet{{kNoPayload, kNoPayload, kNoPayload}, generation};",
                  "packets[i] = Packet{{0, 0, 0}, generation};"}},
       .equivalent =
           "what a rank delivers after one of its waits has expired is not defined; expert "
           "0 is an index as good as none"});

  // ---- order ----------------------------------------------------------------------------------
  add({.name = "flags_are_relaxed",
       .rule = Rule::kOrder,
       .edits = {{kExchange, "store_release(reinterpret_cast<uint32_t*>(flag), generation);",
                  "afdep_emu_store_relaxed(flag, generation, AFDEP_EMU_SYSTEM_SCOPE);"}}});
  add({.name = "flags_are_not_acquired",
       .rule = Rule::kOrder,
       .edits = {{kWait, "seen = load_acquire(flag);",
                  "seen = afdep_emu_load_relaxed(flag, AFDEP_EMU_SYSTEM_SCOPE);"}}});
  add({.name = "flags_are_released_to_one_gpu",
       .rule = Rule::kOrder,
       .edits = {{kExchange, "store_release(reinterpret_cast<uint32_t*>(flag), generation);",
                  "store_release_here(reinterpret_cast<uint32_t*>(flag), generation);"}}});
  add({.name = "flags_are_acquired_from_one_gpu",
       .rule = Rule::kOrder,
       .edits = {{kWait, "seen = load_acquire(flag);", "seen = load_acquire_here(flag);"}}});
  add({.name = "done_words_are_acquired_from_one_gpu",
       .rule = Rule::kOrder,
       .edits = {{kWait, "seen = load_acquire(done);", "seen = load_acquire_here(done);"}}});
  add({.name = "done_words_are_not_acquired",
       .rule = Rule::kOrder,
       .edits = {{kWait, "seen = load_acquire(done);",
                  "seen = afdep_emu_load_relaxed(done, AFDEP_EMU_SYSTEM_SCOPE);"}},
       .victims = kTwoByTwo | kBulk,
       .equivalent =
           "what done words guard are packets, which may be overwritten once it was observed that "
           "they are read; rows are ordered by the replies of the exchange that they overwrite"});
  add({.name = "row_flags_before_the_rows",
       .rule = Rule::kOrder,
       .edits = {{"attention_dispatch", "    uint64_t sent = 0;",
                  "    if (lane_index() < cfg::kWorkers) {\n"
                  "      release_flag(args.common.peer[lane_index()] + flags + chunk * 4, "
                  "generation);\n    }\n    uint64_t sent = 0;"}}});
  add({.name = "reply_flags_before_the_replies",
       .rule = Rule::kOrder,
       .edits = {
           {"ffn_reply", "    bool replied = false;",
            "    if (lane_index() == 0) {\n"
            "      release_flag(window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes +\n"
            "                       args.common.index * cfg::kFlagsWorkerBytes + source_chunk * "
            "4,\n                   generation);\n    }\n    bool replied = false;"}}});
  add({.name = "no_sync_warp_before_the_row_flags",
       .rule = Rule::kOrder,
       .edits = {{"attention_dispatch",
                  "sync_warp();  // all lanes' stores come before the releases below", ""}}});
  add({.name = "no_sync_warp_before_the_reply_flags",
       .rule = Rule::kOrder,
       .edits = {
           {"ffn_reply", "sync_warp();  // all lanes' stores come before the release below", ""}}});
  add({.name = "no_sync_warp_after_the_done_words",
       .rule = Rule::kOrder,
       .edits = {{kExchange,
                  "sync_warp();  // the other lanes' stores come after the acquires above", ""}},
       .equivalent =
           "the collectives that follow hold every lane until the lanes that look have seen the "
           "done words, and a packet needs no more than to be stored after that was observed; raw "
           "rows are ordered by the replies of the exchange that they overwrite"});
  add({.name = "no_sync_warp_after_the_reply_flags",
       .rule = Rule::kOrder,
       .edits = {
           {kExchange, "sync_warp();  // every lane's loads come after all lanes' acquires", ""}}});
  add({.name = "no_sync_block_after_clear",
       .rule = Rule::kOrder,
       .edits = {{"ffn_receive", "  sync_block();\n", "", 1}}});
  add({.name = "no_sync_block_after_the_table",
       .rule = Rule::kOrder,
       .edits = {{"ffn_receive", "  sync_block();\n", "", 2}}});
  add({.name = "no_sync_block_after_ranking",
       .rule = Rule::kOrder,
       .edits = {{"ffn_receive", "  sync_block();\n", "", 3}}});
  add({.name = "no_sync_warp_before_next_moves",
       .rule = Rule::kOrder,
       .edits = {{kRank,
                  "sync_warp();  // everybody has read `next` before the first of each "
                  "expert moves it on",
                  ""}}});
  add({.name = "no_sync_warp_after_next_moved",
       .rule = Rule::kOrder,
       .edits = {{kRank, "    sync_warp();\n", "", 1}}});
  add({.name = "dispatch_does_not_await_collect",
       .rule = Rule::kOrder,
       .edits = {{"attention_dispatch", "await_previous_kernel();", ""}}});
  add({.name = "collect_does_not_await_dispatch",
       .rule = Rule::kOrder,
       .edits = {{"attention_collect", "await_previous_kernel();", ""}}});
  add({.name = "receive_does_not_await_reply",
       .rule = Rule::kOrder,
       .edits = {{"ffn_receive", "await_previous_kernel();", ""}}});
  add({.name = "reply_does_not_await_receive",
       .rule = Rule::kOrder,
       .edits = {{"ffn_reply", "await_previous_kernel();", ""}}});
  add({.name = "packets_are_plain_vectors",
       .rule = Rule::kOrder,
       .edits = {{kRow,
                  "    store_packet(to + Row::packet_byte(q), packet_of(part, q, generation));",
                  "    const Packet p = packet_of(part, q, generation);\n"
                  "    store_vector(to + Row::packet_byte(q),\n"
                  "                 Vector{{p.word[0], p.word[1], p.word[2], p.generation}});"}}});

  // ---- data -----------------------------------------------------------------------------------
  add({.name = "receive_waits_for_the_first_chunk",
       .rule = Rule::kData,
       .edits = {{"ffn_receive", "token / cfg::kChunkRows * 4", "token / cfg::kChunkRows * 0"}}});
  add({.name = "collect_waits_for_the_first_chunk",
       .rule = Rule::kData,
       .edits = {
           {"attention_collect", "token / cfg::kChunkRows * 4", "token / cfg::kChunkRows * 0"}}});
  add({.name = "empty_chunks_are_signalled",
       .rule = Rule::kData,
       .edits = {{"attention_dispatch", "if ((sent >> worker & 1u) == 0)",
                  "if ((sent >> worker & 1u) == 2)"}}});
  add({.name = "one_row_fewer_a_chunk_in_reply",
       .rule = Rule::kData,
       .edits = {{"ffn_reply", "for (int i = 0; i < cfg::kChunkRows; ++i) {",
                  "for (int i = 1; i < cfg::kChunkRows; ++i) {"}}});
  add({.name = "the_last_packet_is_not_sent",
       .rule = Rule::kData,
       .edits = {{kRow, "if (share >= Row::kShares) return;\n  uint8_t* const to",
                  "if (share >= Row::kShares - 1) return;\n  uint8_t* const to"}}});
  add({.name = "the_last_packet_is_not_awaited",
       .rule = Rule::kData,
       .edits = {{kRow, "if (share < Row::kShares && look.packet[q]",
                  "if (share < Row::kShares - 1 && look.packet[q]"}}});
  add({.name = "rows_go_to_the_first_worker_only",
       .rule = Rule::kData,
       .edits = {{"attention_dispatch", "to.includes(1)", "to.includes(0)"}}});
  add({.name = "experts_on_the_next_worker",
       .rule = Rule::kData,
       .edits = {{kRoute, "(static_cast<unsigned>(expert) / kExpertsPerWorker)",
                  "((static_cast<unsigned>(expert) + 1) / kExpertsPerWorker)"}}});
  add({.name = "the_last_expert_is_not_counted",
       .rule = Rule::kData,
       .edits = {{kRank, "store_word(&counts[e], table.total[e]);",
                  "if (e + 1 < Table::kLocalExperts) store_word(&counts[e], table.total[e]);"}}});
  add({.name = "the_last_end_is_forgotten",
       .rule = Rule::kData,
       .edits = {{kRank, "store_word(&ends[e], table.base[e] + table.total[e]);",
                  "if (e > 0) store_word(&ends[e], table.base[e] + table.total[e]);"}}});
  add({.name = "ranks_count_themselves",
       .rule = Rule::kData,
       .edits = {{kRank, "(1u << lane_index()) - 1u", "(2u << lane_index()) - 1u"}}});
  add({.name = "units_of_earlier_blocks_off_by_one",
       .rule = Rule::kData,
       .edits = {
           {kRank, "if (unit < first_unit) add_shared", "if (unit <= first_unit) add_shared"}}});
  add({.name = "experts_are_not_aligned",
       .rule = Rule::kData,
       .edits = {},
       .change = [](ExchangePlan& plan) { set_all(plan, "kAlignment", 1); }});
  add({.name = "the_last_padding_row_is_not_zeroed",
       .rule = Rule::kData,
       .edits = {{kRank, "for (uint32_t i = count; i < aligned; ++i) {",
                  "for (uint32_t i = count; i + 1 < aligned; ++i) {"}}});
  add({.name = "padding_overwrites_the_last_row",
       .rule = Rule::kData,
       .edits = {{kRank, "for (uint32_t i = count; i < aligned; ++i) {",
                  "for (uint32_t i = count > 0 ? count - 1 : 0; i < aligned; ++i) {"}}});
  add({.name = "weights_of_the_first_choice",
       .rule = Rule::kData,
       .edits = {{kRank, "table.weight[own * Table::kChoices + lane_index()]",
                  "table.weight[own * Table::kChoices]"}}});
  add({.name = "odd_choices_get_even_weights",
       .rule = Rule::kData,
       .edits = {{kTable, "packet.word[0] >> 16, packet.word[2]",
                  "packet.word[0] >> 16, packet.word[1]"}}});
  add({.name = "choices_summed_backwards",
       .rule = Rule::kData,
       .edits = {{kRow,
                  "const int64_t row =\n          static_cast<int>(shuffle(static_cast<uint32_t>"
                  "(lane_row), lowest_bit(left)));\n      left &= left - 1;",
                  "const int top = 31 - __builtin_clz(left);\n      const int64_t row =\n          "
                  "static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), top));\n      left &= "
                  "~(1u << top);"}}});
  add({.name = "sums_start_at_plus_zero",
       .rule = Rule::kData,
       .edits = {{kRow, "low[i] = high[i] = -0.0f;", "low[i] = high[i] = 0.0f;"}},
       .victims = kManySlots});
  add({.name = "tokens_without_experts_keep_old_destinations",
       .rule = Rule::kData,
       .edits = {{kRoute,
                  "AFDEP_DEVICE void store_destinations(uint8_t* table, int token, const "
                  "Destinations& to) {\n",
                  "AFDEP_DEVICE void store_destinations(uint8_t* table, int token, const "
                  "Destinations& to) {\n  if (to.mask == 0) return;\n"}}});
  add({.name = "units_without_rows_keep_old_ones",
       .rule = Rule::kData,
       .edits = {{"ffn_receive", "if (lane_index() < cfg::kTopK) {",
                  "if (lane_index() < cfg::kTopK && lane_row != kNoRow) {"}}});
  add({.name = "repeated_ids_are_kept",
       .rule = Rule::kData,
       .edits = {{kRoute, "return in_range && !bad ?", "return in_range ?"}}});
  add({.name = "ids_out_of_range_are_kept",
       .rule = Rule::kData,
       .edits = {{kRoute, "given >= 0 && given < kExperts;", "given >= 0;"}}});
  add({.name = "tokens_beyond_the_batch_are_sent",
       .rule = Rule::kData,
       .edits = {{kRoute, "if (token >= tokens) return kNoExpert;",
                  "if (token > tokens) return kNoExpert;"}}});
  add({.name = "the_view_is_not_awaited",
       .rule = Rule::kOrder,
       .edits = {{"attention_collect_view", "if (!from.empty()) {",
                  "if (!from.empty() && token != 0) {"}},
       .victims = kView});
  add({.name = "empty_tokens_of_a_view_are_not_zeroed",
       .rule = Rule::kData,
       .edits = {{"attention_collect_view", "first < cfg::kRowVectors; first += 32",
                  "first < cfg::kRowVectors - 1; first += 32"}},
       .victims = kView});
  add_early(all);
  add_bulk(all);
  add_barrier(all);
  return all;
}

}  // namespace

std::string_view to_string(Rule rule) {
  switch (rule) {
    case Rule::kGeneration:
      return "1 generations";
    case Rule::kSlot:
      return "2 slots";
    case Rule::kReuse:
      return "3 reuse";
    case Rule::kFault:
      return "4 faults";
    case Rule::kOrder:
      return "order";
    case Rule::kData:
      return "data";
  }
  return "rule";
}

std::span<const Mutant> mutants() {
  static const std::vector<Mutant> kAll = make();
  return kAll;
}

}  // namespace afdep::mutation
