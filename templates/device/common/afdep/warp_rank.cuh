// Ranking of a table of so few choices that a warp holds them all: every warp reads the whole table
// and ranks its own unit, so that no warp waits for another. Same rows as rank.cuh with an
// alignment of 1.
#pragma once

#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

namespace afdep {

// The rows of a unit's choices, kNoRow for none.
template <int kTopK>
struct Places {
  int row[kTopK];  // the same on every lane
  int lane_row;    // lane k: of choice k

  AFDEP_DEVICE bool any() const {
    bool any = false;
#pragma unroll
    for (int k = 0; k < kTopK; ++k) any |= row[k] != kNoRow;
    return any;
  }
};

// From lane k's row of choice k.
template <int kTopK>
AFDEP_DEVICE Places<kTopK> places_of(int lane_row) {
  Places<kTopK> places;
  places.lane_row = lane_row;
#pragma unroll
  for (int k = 0; k < kTopK; ++k) {
    places.row[k] = static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), k));
  }
  return places;
}

// Lane l holds the choices l, l + 32, ... of the table, unit-major with an even number of choices a
// unit.
template <int kSourceCount, int kTokenCount, int kChoiceCount, int kExpertCount>
struct WarpTable {
  static constexpr int kChoices = kChoiceCount;  // of a unit
  static constexpr int kLocalExperts = kExpertCount;
  static constexpr int kEntryPackets = (kChoices + 1) / 2;
  static constexpr int kSourceChoices = kTokenCount * kEntryPackets * 2;
  static constexpr int kAll = kSourceCount * kSourceChoices;
  static constexpr int kPerLane = (kAll + 31) / 32;
  static_assert(kAll <= 64, "keys hold a choice in 6 bits");
  static constexpr uint32_t kNotLocal = static_cast<uint32_t>(kExpertCount) << 6;

  uint32_t
      key[kPerLane];      // local expert and choice, in the order of their rows; kNotLocal for none
  uint32_t id[kPerLane];  // global, kNoExpert16 for none
  uint32_t weight[kPerLane];  // FP32 bits
};

// By a warp: waits for the whole table. Each round of polls also looks at the warp's part of a row,
// which left its source with the table; `look` is as of the last round. table: this half's block of
// source 0.
template <typename Table, int kRowWords, int kRun>
AFDEP_DEVICE Table await_table_by_warp(const CommonArgs& args, const uint8_t* table,
                                       int64_t source_bytes, int first_expert, uint32_t generation,
                                       const uint8_t* row, int share, ShareLook<kRun>& look) {
  const uint8_t* at[Table::kPerLane];
  Awaited awaited[Table::kPerLane];
  Packet packet[Table::kPerLane];
  uint32_t missing = 0;
#pragma unroll
  for (int i = 0; i < Table::kPerLane; ++i) {
    const int choice = i * 32 + lane_index();
    const int source = choice / Table::kSourceChoices;
    const int index = choice % Table::kSourceChoices / 2;
    at[i] = table + source * source_bytes + index * kPacketBytes;
    awaited[i] = Awaited{kPhaseTable, static_cast<uint32_t>(source),
                         static_cast<uint32_t>(index / Table::kEntryPackets)};
    packet[i] = Packet{{kNoPayload, kNoPayload, kNoPayload}, generation};
    if (choice < Table::kAll) missing |= 1u << i;
  }
  Deadline deadline{0, 0};
  do {
#pragma unroll
    for (int i = 0; i < Table::kPerLane; ++i) {
      if ((missing >> i & 1u) != 0) packet[i] = load_packet(at[i]);
    }
    if constexpr (kLooksWithPolls) look = look_at_share<kRowWords, kRun>(row, share);
#pragma unroll
    for (int i = 0; i < Table::kPerLane; ++i) {
      if ((missing >> i & 1u) == 0) continue;
      // One miss a round is told, that of the last word that is missing: these are one wait.
      const bool last = i + 1 == Table::kPerLane || missing >> (i + 1) == 0;
      if (packet[i].generation == generation) {
        missing &= ~(1u << i);
      } else if (last && give_up(deadline, args, at[i], awaited[i], generation,
                                 packet[i].generation, generation)) {
        packet[i] = Packet{{kNoPayload, kNoPayload, kNoPayload}, generation};
        missing &= ~(1u << i);
      }
    }
  } while (ballot(missing != 0) != 0);
  if constexpr (!kLooksWithPolls) look = look_at_share<kRowWords, kRun>(row, share);

  Table ids;
#pragma unroll
  for (int i = 0; i < Table::kPerLane; ++i) {
    const uint32_t choice = static_cast<uint32_t>(i * 32 + lane_index());
    const bool odd = (choice & 1u) != 0;
    ids.id[i] = odd ? packet[i].word[0] >> 16 : packet[i].word[0] & 0xffffu;
    ids.weight[i] = odd ? packet[i].word[2] : packet[i].word[1];
    const uint32_t local = ids.id[i] - static_cast<uint32_t>(first_expert);
    ids.key[i] = local < static_cast<uint32_t>(Table::kLocalExperts) ? local << 6 | choice
                                                                     : Table::kNotLocal;
  }
  return ids;
}

// What the lane that holds choice `choice` has in values[choice / 32].
template <int kPerLane>
AFDEP_DEVICE uint32_t value_of_choice(const uint32_t (&values)[kPerLane], int choice) {
  uint32_t value = shuffle(values[0], choice & 31);
#pragma unroll
  for (int i = 1; i < kPerLane; ++i) {
    const uint32_t other = shuffle(values[i], choice & 31);
    if (choice / 32 == i) value = other;
  }
  return value;
}

// The rows of a unit: before each come the choices of smaller experts, and those of its expert in
// units before.
template <typename Table>
AFDEP_DEVICE Places<Table::kChoices> places_in(const Table& ids, int unit) {
  Places<Table::kChoices> places;
  places.lane_row = kNoRow;
#pragma unroll
  for (int k = 0; k < Table::kChoices; ++k) {
    const uint32_t key = value_of_choice(ids.key, unit * Table::kEntryPackets * 2 + k);
    int before = 0;
#pragma unroll
    for (int i = 0; i < Table::kPerLane; ++i) before += count_bits(ballot(ids.key[i] < key));
    const int row = key < Table::kNotLocal ? before : kNoRow;
    places.row[k] = row;
    if (lane_index() == k) places.lane_row = row;
  }
  return places;
}

// Lane k: the weight of choice k of a unit, FP32 bits.
template <typename Table>
AFDEP_DEVICE uint32_t lane_weight_of(const Table& ids, int unit) {
  return value_of_choice(ids.weight, unit * Table::kEntryPackets * 2 + lane_index());
}

// Lane k: the expert of choice k of a unit, local or not.
template <typename Table>
AFDEP_DEVICE int lane_expert_of(const Table& ids, int unit) {
  const uint32_t id = value_of_choice(ids.id, unit * Table::kEntryPackets * 2 + lane_index());
  return lane_index() >= Table::kChoices || id == kNoExpert16 ? kNoExpert : static_cast<int>(id);
}

// By kWarps warps, this one the `warp`-th: the prefix sum and the live counts of the local experts,
// int32.
template <int kWarps, typename Table>
AFDEP_DEVICE void publish_ends_by_warps(const Table& ids, int warp, int32_t* ends,
                                        int32_t* counts) {
#pragma unroll 1
  for (int first = warp * 32; first < Table::kLocalExperts; first += kWarps * 32) {
    const int expert = first + lane_index();
    const uint32_t begin_key = static_cast<uint32_t>(expert) << 6;
    uint32_t end = 0;
    uint32_t begin = 0;
#pragma unroll
    for (int i = 0; i < Table::kPerLane; ++i) {
#pragma unroll 8
      for (int lane = 0; lane < 32 && i * 32 + lane < Table::kAll; ++lane) {
        const uint32_t key = shuffle(ids.key[i], lane);
        if (key < begin_key) ++begin;
        if (key < begin_key + 64) ++end;
      }
    }
    if (expert < Table::kLocalExperts) {
      store_word(&ends[expert], end);
      store_word(&counts[expert], end - begin);
    }
  }
}

}  // namespace afdep
