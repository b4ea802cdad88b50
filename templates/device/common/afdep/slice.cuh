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

// Lane k: the expert of choice k of a token.
template <int kTopK>
AFDEP_DEVICE int expert_of_choice(uint32_t packed) {
  const uint32_t expert = choice_expert(packed);
  return lane_index() < kTopK && expert != kNoExpert16 ? static_cast<int>(expert) : kNoExpert;
}

// Shared memory of a dispatch block. Its warps rank one segment of the slice's choices each, all at
// once; a prefix over the segments then makes ranks within the slice.
template <int kExpertCount, int kTokenCount, int kChoiceCount, int kWarpCount>
struct SliceTable {
  static constexpr int kExperts = kExpertCount;
  static constexpr int kTokens = kTokenCount;
  static constexpr int kChoices = kTokenCount * kChoiceCount;
  static constexpr int kSegments = kWarpCount;
  static constexpr int kSegmentChoices = (kChoices + kSegments - 1) / kSegments;

  uint64_t destinations[kTokens];  // mask of workers
  uint32_t packed[kChoices];       // first the expert alone, kNoExpert16 for none; then pack_choice
  uint32_t weight[kChoices];       // FP32 bits
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

// By each warp, when all experts are in `packed`: ranks the choices of its segment among
// themselves.
template <typename Slice>
AFDEP_DEVICE void rank_segment(Slice& slice, int segment) {
  const int begin = segment * Slice::kSegmentChoices;
  const int end = begin + Slice::kSegmentChoices < Slice::kChoices ? begin + Slice::kSegmentChoices
                                                                   : Slice::kChoices;
#pragma unroll 1
  for (int first = begin; first < end; first += 32) {
    const int i = first + lane_index();
    const uint32_t expert = i < end ? slice.packed[i] : kNoExpert16;
    const bool chosen = expert != kNoExpert16;
    const uint32_t same =
        match(chosen ? expert : 0x80000000u + static_cast<uint32_t>(lane_index()));
    const uint32_t earlier = static_cast<uint32_t>(count_bits(same & ((1u << lane_index()) - 1u)));
    uint32_t rank = 0;
    if (chosen) rank = slice.before[segment][expert] + earlier;
    sync_warp();  // everybody has read the count before the first of each expert moves it on
    if (chosen && earlier == 0) {
      slice.before[segment][expert] = static_cast<uint16_t>(
          slice.before[segment][expert] + static_cast<uint32_t>(count_bits(same)));
    }
    if (i < end) slice.packed[i] = pack_choice(expert, rank);
    sync_warp();
  }
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

// One choice and its weight (FP32 bits) into a worker's inbox; a release flag of the slice
// publishes them.
AFDEP_DEVICE void store_choice(uint8_t* to, uint32_t packed, uint32_t weight) {
  store_word(to, packed);
  store_word(to + 4, weight);
}

// Shared memory of a receive block: where each local expert's rows begin, and where within them
// those of this block's slices. kSliceCount: slices of all sources, source-major; kOwnCount: those
// that this block's units touch.
template <int kExpertCount, int kSliceCount, int kOwnCount>
struct PrefixTable {
  static constexpr int kLocalExperts = kExpertCount;
  static constexpr int kSlices = kSliceCount;
  static constexpr int kOwnSlices = kOwnCount;

  uint32_t total[kLocalExperts];
  uint32_t base[kLocalExperts];
  uint32_t own[kOwnSlices][kLocalExperts];  // rows of the expert in slices before
  uint32_t ready[kOwnSlices];               // the slice's choices are there
  uint16_t count[kSlices][count_packets(kLocalExperts) * kPacketCounts];
};

// By the whole block: waits for the counts of every slice. counts: the packets of source 0.
template <int kSourceSlices, int kThreads, int kBatch, typename Table>
AFDEP_DEVICE void read_counts(const CommonArgs& args, const uint8_t* counts, int64_t source_bytes,
                              uint32_t generation, Table& table) {
  constexpr int kSlicePackets = count_packets(Table::kLocalExperts);
  constexpr int kPackets = Table::kSlices * kSlicePackets;
  for (int first = thread_index(); first < kPackets; first += kThreads * kBatch) {
    const uint8_t* from[kBatch];
    Awaited awaited[kBatch];
    Packet packets[kBatch];
    uint32_t wanted = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int i = first + j * kThreads;
      const int slice = i / kSlicePackets;
      const int source = slice / kSourceSlices;
      const int packet = slice % kSourceSlices * kSlicePackets + i % kSlicePackets;
      from[j] = counts + source * source_bytes + packet * kPacketBytes;
      awaited[j] = Awaited{kPhaseTable, static_cast<uint32_t>(source),
                           static_cast<uint32_t>(slice % kSourceSlices)};
      packets[j] = Packet{{0, 0, 0}, 0};
      if (i < kPackets) wanted |= 1u << j;
    }
    await_packets(args, packets, from, wanted, generation, awaited);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int i = first + j * kThreads;
      if ((wanted >> j & 1u) == 0) continue;
#pragma unroll
      for (int c = 0; c < kPacketCounts; ++c) {
        // A wait that gave up reads as no rows, so that nothing is placed outside the receive
        // tensor.
        const uint32_t pair = packets[j].word[c / 2];
        const uint32_t count = pair == kNoPayload ? 0 : pair >> (c % 2 * 16) & 0xffffu;
        table.count[i / kSlicePackets][i % kSlicePackets * kPacketCounts + c] =
            static_cast<uint16_t>(count);
      }
    }
  }
}

// By the whole block, when all counts are there: totals, and the prefix of the own slices, which
// begin at first_slice.
template <int kThreads, typename Table>
AFDEP_DEVICE void sum_counts(Table& table, int first_slice) {
  for (int expert = thread_index(); expert < Table::kLocalExperts; expert += kThreads) {
    uint32_t rows = 0;
#pragma unroll 8
    for (int slice = 0; slice < Table::kSlices; ++slice) {
      const int own = slice - first_slice;
      if (own >= 0 && own < Table::kOwnSlices) table.own[own][expert] = rows;
      rows += table.count[slice][expert];
    }
    table.total[expert] = rows;
  }
}

// The row of a choice of own slice `own_slice`, kNoRow if its expert is not local.
template <typename Table>
AFDEP_DEVICE int row_of_choice(const Table& table, int own_slice, int first_expert,
                               uint32_t packed) {
  const uint32_t local = choice_expert(packed) - static_cast<uint32_t>(first_expert);
  if (local >= static_cast<uint32_t>(Table::kLocalExperts)) return kNoRow;
  return static_cast<int>(table.base[local] + table.own[own_slice][local] + choice_rank(packed));
}

}  // namespace afdep
