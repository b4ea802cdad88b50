// Ranking at the source: a dispatch block ranks the choices of its own tokens, its slice, and sends
// the counts of the slice ahead of the rows. The worker needs only a prefix over (expert, source,
// slice).
#pragma once

#include "afdep/exchange.cuh"
#include "afdep/generation.h"
#include "afdep/packet.cuh"
#include "afdep/rank.cuh"
#include "afdep/route.cuh"
#include "afdep/table.cuh"

namespace afdep {

constexpr int kPacketCounts = 6;  // 16-bit counts in a packet

AFDEP_HOST_DEVICE constexpr int count_packets(int experts) {
  return (experts + kPacketCounts - 1) / kPacketCounts;
}

// A choice on the wire: the expert and the rank of the choice among the slice's choices of that
// expert, in token order.
AFDEP_DEVICE uint32_t pack_choice(uint32_t expert, uint32_t rank) { return expert << 16 | rank; }
AFDEP_DEVICE uint32_t choice_expert(uint32_t packed) { return packed >> 16; }
AFDEP_DEVICE uint32_t choice_rank(uint32_t packed) { return packed & 0xffffu; }

constexpr uint32_t kNoChoice = kNoExpert16 << 16;  // as packed

// A token's choices on the wire: packets of three packed choices, then as many of their weights.
constexpr int kPacketChoices = 3;

AFDEP_HOST_DEVICE constexpr int choice_packets(int top_k) {
  return 2 * ((top_k + kPacketChoices - 1) / kPacketChoices);
}

// Lane k: the expert of choice k of a token.
template <int kTopK>
AFDEP_DEVICE int expert_of_choice(uint32_t packed) {
  const uint32_t expert = choice_expert(packed);
  return lane_index() < kTopK && expert != kNoExpert16 ? static_cast<int>(expert) : kNoExpert;
}

// Shared memory of a dispatch block. Warps rank a segment of the slice's tokens each, all at once;
// a prefix over the segments then makes ranks within the slice.
template <int kExpertCount, int kTokenCount, int kChoiceCount, int kWarpCount>
struct SliceTable {
  static constexpr int kExperts = kExpertCount;
  static constexpr int kTokens = kTokenCount;
  static constexpr int kTopK = kChoiceCount;
  static constexpr int kChoices = kTokenCount * kChoiceCount;
  static constexpr int kSegments = kWarpCount;
  static constexpr int kSegmentTokens = (kTokens + kSegments - 1) / kSegments;
  static constexpr int kSegmentChoices = kSegmentTokens * kTopK;

  uint64_t destinations[kTokens];        // mask of workers
  uint32_t packed[kChoices];             // with the rank within the segment
  uint32_t weight[kChoices];             // FP32 bits
  uint16_t before[kSegments][kExperts];  // first a segment's choices of an expert; then those of
                                         // the segments before it
  uint16_t count[kExperts];              // of the slice
};

// By the whole block, before routes are stored; a block barrier must follow.
template <int kThreads, typename Slice>
AFDEP_DEVICE void clear_counts(Slice& slice) {
  for (int i = thread_index(); i < Slice::kSegments * Slice::kExperts; i += kThreads) {
    slice.before[i / Slice::kExperts][i % Slice::kExperts] = 0;
  }
}

// By the warp of a segment, in the order of its choices: ranks the choices that its lanes hold
// among the segment's. index: of the lane's choice in the slice, negative for none.
template <typename Slice>
AFDEP_DEVICE void rank_choices(Slice& slice, int segment, int index, int expert, uint32_t weight) {
  const bool chosen = index >= 0 && expert != kNoExpert;
  const uint32_t same = match(chosen ? static_cast<uint32_t>(expert)
                                     : 0x80000000u + static_cast<uint32_t>(lane_index()));
  const uint32_t earlier = static_cast<uint32_t>(count_bits(same & ((1u << lane_index()) - 1u)));
  uint32_t rank = 0;
  if (chosen) rank = slice.before[segment][expert] + earlier;
  sync_warp();  // everybody has read the count before the first of each expert moves it on
  if (chosen && earlier == 0) {
    slice.before[segment][expert] = static_cast<uint16_t>(slice.before[segment][expert] +
                                                          static_cast<uint32_t>(count_bits(same)));
  }
  if (index >= 0) {
    slice.packed[index] = chosen ? pack_choice(static_cast<uint32_t>(expert), rank) : kNoChoice;
    slice.weight[index] = weight;
  }
  sync_warp();
}

// By the whole block, after all segments and a block barrier; a block barrier must follow.
template <int kThreads, typename Slice>
AFDEP_DEVICE void sum_segments(Slice& slice) {
  for (int expert = thread_index(); expert < Slice::kExperts; expert += kThreads) {
    uint32_t choices = 0;
#pragma unroll
    for (int segment = 0; segment < Slice::kSegments; ++segment) {
      const uint32_t here = slice.before[segment][expert];
      slice.before[segment][expert] = static_cast<uint16_t>(choices);
      choices += here;
    }
    slice.count[expert] = static_cast<uint16_t>(choices);
  }
}

// Choice `i` of the slice with its rank within the slice.
template <typename Slice>
AFDEP_DEVICE uint32_t ranked_choice(const Slice& slice, int i) {
  const uint32_t packed = slice.packed[i];
  const uint32_t expert = choice_expert(packed);
  if (expert == kNoExpert16) return packed;
  return packed + slice.before[i / Slice::kSegmentChoices][expert];
}

// Packet `packet` of the counts of one worker's experts, which begin at first_expert.
template <int kLocalExperts, typename Slice>
AFDEP_DEVICE Packet counts_packet(const Slice& slice, int first_expert, int packet,
                                  uint32_t generation) {
  Packet p{{0, 0, 0}, generation};
#pragma unroll
  for (int i = 0; i < kPacketCounts; ++i) {
    const int local = packet * kPacketCounts + i;
    if (local >= kLocalExperts) continue;
    p.word[i / 2] |= static_cast<uint32_t>(slice.count[first_expert + local]) << (i % 2 * 16);
  }
  return p;
}

// Packet `packet` of a token's choices.
template <typename Slice>
AFDEP_DEVICE Packet choice_packet(const Slice& slice, int token, int packet, uint32_t generation) {
  constexpr int kPackedPackets = choice_packets(Slice::kTopK) / 2;
  const bool weights = packet >= kPackedPackets;
  const int first = (weights ? packet - kPackedPackets : packet) * kPacketChoices;
  Packet p{{kNoChoice, kNoChoice, kNoChoice}, generation};
#pragma unroll
  for (int j = 0; j < kPacketChoices; ++j) {
    if (first + j >= Slice::kTopK) continue;
    const int i = token * Slice::kTopK + first + j;
    p.word[j] = weights ? slice.weight[i] : ranked_choice(slice, i);
  }
  return p;
}

namespace detail {

template <bool kWide>
struct Count {
  using Type = uint16_t;
};
template <>
struct Count<true> {
  using Type = uint32_t;
};

}  // namespace detail

// Shared memory of a receive block: where each local expert's rows begin, and where within them
// those of each slice. kSliceCount: slices of all sources, source-major. kWide: an expert may have
// 65,536 rows or more. Threads sum an expert's slices in parts.
template <int kExpertCount, int kSliceCount, int kThreadCount, bool kWide>
struct PrefixTable {
  using Count = typename detail::Count<kWide>::Type;
  static constexpr int kLocalExperts = kExpertCount;
  static constexpr int kSlices = kSliceCount;
  static constexpr int kThreads = kThreadCount;
  static constexpr int kMostParts = kThreads > kLocalExperts ? kThreads / kLocalExperts : 1;
  static constexpr int kParts = kMostParts < kSlices ? kMostParts : kSlices;
  static constexpr int kPartSlices = (kSlices + kParts - 1) / kParts;

  uint32_t total[kLocalExperts];
  uint32_t base[kLocalExperts];
  uint32_t part[kParts][kLocalExperts];  // rows of the expert in a part's slices
  // First the expert's rows in the slice, then those in the slices before it.
  Count count[kSlices][count_packets(kLocalExperts) * kPacketCounts];
};

// By the whole block: waits for the counts of every slice. counts: the packets of source 0.
template <int kSourceSlices, int kThreads, int kBatch, typename Table>
AFDEP_DEVICE void read_counts(const CommonArgs& args, const uint8_t* counts, int64_t source_bytes,
                              uint32_t generation, Table& table) {
  constexpr int kSlicePackets = count_packets(Table::kLocalExperts);
  constexpr int kSourcePackets = kSourceSlices * kSlicePackets;
  read_packets<Table::kSlices * kSlicePackets, kThreads, kBatch>(
      args, generation,
      [&](int i) {
        return counts + i / kSourcePackets * source_bytes + i % kSourcePackets * kPacketBytes;
      },
      [&](int i) {
        return Awaited{kPhaseTable, static_cast<uint32_t>(i / kSourcePackets),
                       static_cast<uint32_t>(i % kSourcePackets / kSlicePackets)};
      },
      [&](int i, const Packet& packet) {
#pragma unroll
        for (int c = 0; c < kPacketCounts; ++c) {
          // A wait that gave up reads as no rows, so that nothing is placed outside the receive
          // tensor.
          const uint32_t pair = packet.word[c / 2];
          const uint32_t count = pair == kNoPayload ? 0 : pair >> (c % 2 * 16) & 0xffffu;
          table.count[i / kSlicePackets][i % kSlicePackets * kPacketCounts + c] =
              static_cast<typename Table::Count>(count);
        }
      });
}

// Shared memory of a receive block: the choices of the units that it owns.
template <int kUnitCount, int kChoiceCount>
struct UnitChoices {
  static constexpr int kUnits = kUnitCount;
  static constexpr int kTopK = kChoiceCount;

  uint32_t packed[kUnits][kTopK];
  uint32_t weight[kUnits][kTopK];  // FP32 bits
};

// A packet of choices of unit `own` has come: number i of kTokenPackets.
template <typename Choices>
AFDEP_DEVICE void take_choices(Choices& choices, int own, int i, const Packet& packet) {
  constexpr int kPackedPackets = choice_packets(Choices::kTopK) / 2;
  const bool weights = i >= kPackedPackets;
  const int first = i % kPackedPackets * kPacketChoices;
#pragma unroll
  for (int j = 0; j < kPacketChoices; ++j) {
    if (first + j >= Choices::kTopK) continue;
    if (weights) {
      choices.weight[own][first + j] = packet.word[j];
    } else {
      choices.packed[own][first + j] = packet.word[j];
    }
  }
}

// By the whole block: waits for the choices of its first kUnits units. token_at(own): the first
// packet of own unit `own`, null if there is no such unit; whose(own): what a fault record says of
// it. A packet whose wait gave up names no expert.
template <int kUnits, int kThreads, int kBatch, typename Choices, typename TokenAt, typename Whose>
AFDEP_DEVICE void read_choices(const CommonArgs& args, uint32_t generation, const TokenAt& token_at,
                               const Whose& whose, Choices& own) {
  constexpr int kTokenPackets = choice_packets(Choices::kTopK);
  read_packets<kUnits * kTokenPackets, kThreads, kBatch>(
      args, generation,
      [&](int i) -> const uint8_t* {
        const uint8_t* const token = token_at(i / kTokenPackets);
        return token == nullptr ? nullptr : token + i % kTokenPackets * kPacketBytes;
      },
      [&](int i) { return whose(i / kTokenPackets); },
      [&](int i, const Packet& packet) {
        take_choices(own, i / kTokenPackets, i % kTokenPackets, packet);
      });
}

// By one warp: the same of one unit, whose first packet is at `token`. A warp barrier must follow.
template <typename Choices>
AFDEP_DEVICE void read_choices_of(const CommonArgs& args, uint32_t generation, const uint8_t* token,
                                  const Awaited& whose, int own, Choices& choices) {
  for (int i = lane_index(); i < choice_packets(Choices::kTopK); i += 32) {
    take_choices(choices, own, i, await_packet(args, token + i * kPacketBytes, generation, whose));
  }
}

// Whether own unit `own` chose one of the local experts, as far as all its choices came.
template <int kLocalExperts, typename Choices>
AFDEP_DEVICE bool chooses_local(const Choices& choices, int own, int first_expert) {
  bool local = false;
  bool whole = true;
#pragma unroll
  for (int k = 0; k < Choices::kTopK; ++k) {
    whole &= choices.packed[own][k] != kNoPayload;
    local |= choice_expert(choices.packed[own][k]) - static_cast<uint32_t>(first_expert) <
             static_cast<uint32_t>(kLocalExperts);
  }
  return local && whole;
}

// By the whole block, when all counts are there; a block barrier must follow.
template <typename Table>
AFDEP_DEVICE void sum_parts(Table& table) {
  for (int i = thread_index(); i < Table::kParts * Table::kLocalExperts; i += Table::kThreads) {
    const int part = i / Table::kLocalExperts;
    const int expert = i % Table::kLocalExperts;
    uint32_t rows = 0;
#pragma unroll 8
    for (int j = 0; j < Table::kPartSlices; ++j) {
      const int slice = part * Table::kPartSlices + j;
      if (slice < Table::kSlices) rows += table.count[slice][expert];
    }
    table.part[part][expert] = rows;
  }
}

// By one warp, after that: lane l sums experts l, l + 32, ...
template <typename Table>
AFDEP_DEVICE void sum_totals(Table& table) {
  for (int expert = lane_index(); expert < Table::kLocalExperts; expert += 32) {
    uint32_t rows = 0;
#pragma unroll 8
    for (int part = 0; part < Table::kParts; ++part) rows += table.part[part][expert];
    table.total[expert] = rows;
  }
}

// By the whole block, after sum_parts and a block barrier: counts become prefixes. From the last
// thread down, since the first warp has the totals to sum.
template <typename Table>
AFDEP_DEVICE void sum_slices(Table& table) {
  for (int i = Table::kThreads - 1 - thread_index(); i < Table::kParts * Table::kLocalExperts;
       i += Table::kThreads) {
    const int mine = i / Table::kLocalExperts;
    const int expert = i % Table::kLocalExperts;
    uint32_t rows = 0;
#pragma unroll 8
    for (int part = 0; part < Table::kParts; ++part) {
      if (part < mine) rows += table.part[part][expert];
    }
#pragma unroll 8
    for (int j = 0; j < Table::kPartSlices; ++j) {
      const int slice = mine * Table::kPartSlices + j;
      if (slice >= Table::kSlices) continue;
      const uint32_t here = table.count[slice][expert];
      table.count[slice][expert] = static_cast<typename Table::Count>(rows);
      rows += here;
    }
  }
}

// The row of a choice of slice `slice`, kNoRow if its expert is not local.
template <typename Table>
AFDEP_DEVICE int row_of_choice(const Table& table, int slice, int first_expert, uint32_t packed) {
  const uint32_t local = choice_expert(packed) - static_cast<uint32_t>(first_expert);
  if (local >= static_cast<uint32_t>(Table::kLocalExperts)) return kNoRow;
  return static_cast<int>(table.base[local] + table.count[slice][local] + choice_rank(packed));
}

}  // namespace afdep
