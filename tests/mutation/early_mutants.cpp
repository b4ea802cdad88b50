#include "tests/mutation/early_mutants.h"

namespace afdep::mutation {
namespace {

constexpr const char* kUnit = "afdep/unit.cuh";
constexpr const char* kWarpRank = "afdep/warp_rank.cuh";
constexpr const char* kRow = "afdep/row.cuh";
constexpr const char* kExchange = "afdep/exchange.cuh";

}  // namespace

void add_early(std::vector<Mutant>& all) {
  all.push_back({.name = "units_match_if_not_zero",
                 .rule = Rule::kGeneration,
                 .edits = {{kUnit, "all &= packet[i].generation == generation",
                            "all &= packet[i].generation != 0 * generation"}},
                 .victims = kEarly});
  all.push_back(
      {.name = "reply_expects_the_generation_before",
       .rule = Rule::kGeneration,
       .edits = {{kExchange, "return next_generation(load_relaxed(&args.control->finished));",
                  "return load_relaxed(&args.control->finished);"}},
       .victims = kEarly});
  all.push_back({.name = "reply_believes_its_early_look",
                 .rule = Rule::kGeneration,
                 .edits = {{"ffn_reply", "if (!rows_of_unit.written_for(expected)) rows_of_unit =",
                            "if (unit >= cfg::kUnits) rows_of_unit ="}},
                 .victims = kEarly});
  all.push_back({.name = "table_of_a_warp_matches_by_parity",
                 .rule = Rule::kGeneration,
                 .edits = {{kWarpRank, "if (packet[i].generation == generation) {",
                            "if (((packet[i].generation ^ generation) & 1u) == 0) {"}},
                 .victims = kEarly});
  all.push_back({.name = "rows_of_a_warp_match_by_parity",
                 .rule = Rule::kGeneration,
                 .edits = {{kRow, "look.packet[q].generation != generation",
                            "((look.packet[q].generation ^ generation) & 1u) != 0"}},
                 .victims = kEarly});
  all.push_back({.name = "finished_is_a_plain_word",
                 .rule = Rule::kOrder,
                 .edits = {{kExchange, "store_relaxed(&args.control->finished, generation);",
                            "store_word(&args.control->finished, generation);"}},
                 .victims = kEarly});
  all.push_back(
      {.name = "units_are_plain_words",
       .rule = Rule::kOrder,
       .edits = {{kUnit, "store_packet(at + lane_index() * kPacketBytes, packet);",
                  "store_vector(at + lane_index() * kPacketBytes, Vector{{packet.word[0], "
                  "packet.word[1], packet.word[2], packet.generation}});"}},
       .victims = kEarly});
  all.push_back({.name = "ranks_of_a_warp_count_themselves",
                 .rule = Rule::kData,
                 .edits = {{kWarpRank, "ballot(ids.key[i] < key)", "ballot(ids.key[i] <= key)"}},
                 .victims = kEarly});
  all.push_back({.name = "ends_of_a_warp_include_the_next_expert",
                 .rule = Rule::kData,
                 .edits = {{kWarpRank, "key < begin_key + 64", "key < begin_key + 128"}},
                 .victims = kEarly});
  all.push_back({.name = "weights_of_a_warp_are_of_unit_zero",
                 .rule = Rule::kData,
                 .edits = {{kWarpRank, "value_of_choice(ids.weight, unit * ",
                            "value_of_choice(ids.weight, unit / 64 * "}},
                 .victims = kEarly});
  all.push_back({.name = "units_forget_the_last_row",
                 .rule = Rule::kData,
                 .edits = {{kUnit, "for (int k = 0; k < Unit::kChoices; ++k) {",
                            "for (int k = 0; k < Unit::kChoices - 1; ++k) {"}},
                 .victims = kEarly});
  all.push_back(
      {.name = "a_warp_of_a_row_is_forgotten",
       .rule = Rule::kData,
       .edits = {{"ffn_reply", "warp % cfg::kRowWarps * 32", "warp / 2 * 2 % cfg::kRowWarps * 32"}},
       .victims = kEarly});
  all.push_back(
      {.name = "packet_choices_summed_backwards",
       .rule = Rule::kData,
       .edits = {{kRow,
                  "const uint32_t word = unit.has(first + j) ? unit.word(first + j) : "
                  "unit.word(first);",
                  "const uint32_t word = unit.has(kBatch - 1 - j) ? unit.word(kBatch - 1 - j) : "
                  "unit.word(first);"},
                 {kRow, "if (j == 0 || (first + j < Unit::kChoices && unit.has(first + j))) {",
                  "if (first + j < Unit::kChoices && unit.has(kBatch - 1 - j)) {"}},
       .victims = kEarly});
  all.push_back({.name = "packet_sum_begins_twice",
                 .rule = Rule::kData,
                 .edits = {{kRow, "add_share<kRun>(sum, part[j], first + j == 0);",
                            "add_share<kRun>(sum, part[j], first + j <= 1);"}},
                 .victims = kEarly});
}

}  // namespace afdep::mutation
