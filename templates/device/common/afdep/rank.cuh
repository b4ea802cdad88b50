// Ranking: which row of the receive tensor each assignment takes. Rows of an expert come in
// (source, token) order, so the order is the same on every run and in every block.
#pragma once

#include "afdep/route.cuh"
#include "afdep/table.cuh"
#include "afdep/thread.cuh"

namespace afdep {

constexpr int kNoRow = -1;

// Shared memory of one receive block. A unit is a (source, token) pair, source-major; a block owns
// kOwnUnitCount consecutive ones and places only their rows, but counts everybody's.
template <int kExpertCount, int kOwnUnitCount, int kChoiceCount>
struct RankTable {
  static constexpr int kLocalExperts = kExpertCount;
  static constexpr int kChoices = kChoiceCount;
  static constexpr int kOwnChoices = kOwnUnitCount * kChoiceCount;

  uint32_t total[kLocalExperts];  // assignments of a local expert, over all sources
  uint32_t
      next[kLocalExperts];  // of units before this block's; later the rank of the next assignment
  uint32_t base[kLocalExperts];  // first row
  uint32_t weight[kOwnChoices];  // FP32 bits
  int32_t rank[kOwnChoices];     // within the expert; kNoRow where the expert is not local
  uint16_t expert[kOwnChoices];  // global id, kNoExpert16 for none
};

// By the whole block, before anything else; a block barrier must follow.
template <int kThreads, typename Table>
AFDEP_DEVICE void clear(Table& table) {
#pragma unroll 1
  for (int e = thread_index(); e < Table::kLocalExperts; e += kThreads) {
    table.total[e] = 0;
    table.next[e] = 0;
  }
#pragma unroll 1
  for (int i = thread_index(); i < Table::kOwnChoices; i += kThreads) {
    table.expert[i] = static_cast<uint16_t>(kNoExpert16);
  }
}

// One choice out of read_table. first_expert, first_unit: of this rank and of this block.
template <typename Table>
AFDEP_DEVICE void count_choice(Table& table, int first_expert, int first_unit, int unit, int choice,
                               uint32_t id, uint32_t weight) {
  const int own = (unit - first_unit) * Table::kChoices + choice;
  if (unit >= first_unit && own < Table::kOwnChoices) {
    table.expert[own] = static_cast<uint16_t>(id);
    table.weight[own] = weight;
  }
  const uint32_t local = id - static_cast<uint32_t>(first_expert);
  if (local < static_cast<uint32_t>(Table::kLocalExperts)) {
    add_shared(table.total[local], 1);
    if (unit < first_unit) add_shared(table.next[local], 1);
  }
}

// By a warp, when all choices are counted: whether unit `own` chose a local expert.
template <typename Table>
AFDEP_DEVICE bool has_local_choice(const Table& table, int own, int first_expert) {
  bool local = false;
  if (lane_index() < Table::kChoices) {
    const uint32_t id = table.expert[own * Table::kChoices + lane_index()];
    local = id - static_cast<uint32_t>(first_expert) < static_cast<uint32_t>(Table::kLocalExperts);
  }
  return ballot(local) != 0;
}

// By one warp, when all choices are counted: the first row of each expert, aligned.
template <int kAlignment, typename Table>
AFDEP_DEVICE void place_experts(Table& table) {
  uint32_t next_row = 0;
  for (int first = 0; first < Table::kLocalExperts; first += 32) {
    const int expert = first + lane_index();
    const uint32_t count = expert < Table::kLocalExperts ? table.total[expert] : 0;
    const uint32_t aligned = (count + kAlignment - 1) / kAlignment * kAlignment;
    uint32_t sum = aligned;
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
      const uint32_t below = shuffle_up(sum, delta);
      if (lane_index() >= delta) sum += below;
    }
    if (expert < Table::kLocalExperts) table.base[expert] = next_row + sum - aligned;
    next_row += shuffle(sum, 31);
  }
}

// By one warp, when all choices are counted: the rank of each own assignment within its expert.
template <typename Table>
AFDEP_DEVICE void rank_own(Table& table, int first_expert) {
  for (int first = 0; first < Table::kOwnChoices; first += 32) {
    const int i = first + lane_index();
    const uint32_t id = i < Table::kOwnChoices ? table.expert[i] : kNoExpert16;
    const uint32_t local = id - static_cast<uint32_t>(first_expert);
    const bool mine = local < static_cast<uint32_t>(Table::kLocalExperts);
    const uint32_t same = match(mine ? local : 0x80000000u + static_cast<uint32_t>(lane_index()));
    const int before = count_bits(same & ((1u << lane_index()) - 1u));
    int32_t rank = kNoRow;
    if (mine) rank = static_cast<int32_t>(table.next[local]) + before;
    sync_warp();  // everybody has read `next` before the first of each expert moves it on
    if (mine && before == 0) table.next[local] += static_cast<uint32_t>(count_bits(same));
    sync_warp();
    if (i < Table::kOwnChoices) table.rank[i] = rank;
  }
}

// Lane k: the row of choice k of this block's unit `own`, or kNoRow. After place_experts, rank_own
// and a block barrier.
template <typename Table>
AFDEP_DEVICE int row_of(const Table& table, int own, int first_expert) {
  if (lane_index() >= Table::kChoices) return kNoRow;
  const int i = own * Table::kChoices + lane_index();
  if (table.rank[i] == kNoRow) return kNoRow;
  return static_cast<int>(table.base[table.expert[i] - first_expert]) + table.rank[i];
}

// The lanes that have a row; the same answer on every lane.
AFDEP_DEVICE uint32_t lanes_with_row(int lane_row) { return ballot(lane_row != kNoRow); }

// Lane k: the expert of choice k of unit `own`, local or not.
template <typename Table>
AFDEP_DEVICE int expert_of(const Table& table, int own) {
  if (lane_index() >= Table::kChoices) return kNoExpert;
  const uint32_t id = table.expert[own * Table::kChoices + lane_index()];
  return id == kNoExpert16 ? kNoExpert : static_cast<int>(id);
}

// Lane k: the weight of choice k of unit `own`, FP32 bits.
template <typename Table>
AFDEP_DEVICE uint32_t weight_of(const Table& table, int own) {
  if (lane_index() >= Table::kChoices) return 0;
  return table.weight[own * Table::kChoices + lane_index()];
}

// Receive keeps each unit's rows in the workspace for reply. Lane k: the row of choice k, kNoRow
// for none.
template <int kTopK>
AFDEP_DEVICE int load_unit_row(const uint8_t* unit_rows, int unit) {
  if (lane_index() >= kTopK) return kNoRow;
  return static_cast<int>(
      load_word(unit_rows + (static_cast<int64_t>(unit) * kTopK + lane_index()) * 4));
}

// By the whole block: the prefix sum and the live counts of the local experts, int32.
template <int kThreads, typename Table>
AFDEP_DEVICE void publish_ends(const Table& table, int32_t* ends, int32_t* counts) {
#pragma unroll 1
  for (int e = thread_index(); e < Table::kLocalExperts; e += kThreads) {
    store_word(&ends[e], table.base[e] + table.total[e]);
    store_word(&counts[e], table.total[e]);
  }
}

// By all blocks: zeroes the rows between an expert's last live row and its aligned end, and their
// weights.
template <int kThreads, int kBlocks, int kAlignment, int kRowWords, typename Table>
AFDEP_DEVICE void zero_padding(const Table& table, uint8_t* rows, float* row_weights) {
  for (int expert = block_index(); expert < Table::kLocalExperts; expert += kBlocks) {
    const uint32_t count = table.total[expert];
    const uint32_t aligned = (count + kAlignment - 1) / kAlignment * kAlignment;
    for (uint32_t i = count; i < aligned; ++i) {
      const int64_t row = table.base[expert] + i;
      for (int word = thread_index(); word < kRowWords; word += kThreads) {
        store_word(rows + (row * kRowWords + word) * 4, 0);
      }
      if (thread_index() == 0) store_word(&row_weights[row], 0);
    }
  }
}

}  // namespace afdep
