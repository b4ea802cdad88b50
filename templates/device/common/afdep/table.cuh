// The top-k table on the wire: two choices a packet, {id | id << 16, weight, weight}; an entry is
// one token's packets.
#pragma once

#include "afdep/packet.cuh"
#include "afdep/route.cuh"

namespace afdep {

constexpr uint32_t kNoExpert16 = 0xffffu;  // kNoExpert on the wire

// Lane j's packet of a token's entry: choices 2j and 2j + 1. expert and weight: lane k's choice k,
// weight as FP32 bits.
AFDEP_DEVICE Packet table_packet(int expert, uint32_t weight, uint32_t generation) {
  const uint32_t id = static_cast<uint32_t>(expert) & 0xffffu;
  const int even = 2 * lane_index() & 31;
  const uint32_t low = shuffle(id, even);
  const uint32_t high = shuffle(id, even + 1);
  const uint32_t low_weight = shuffle(weight, even);
  const uint32_t high_weight = shuffle(weight, even + 1);
  return Packet{{low | high << 16, low_weight, high_weight}, generation};
}

// The weight of choice k of a token as FP32 bits, 0 for a token beyond `tokens`.
template <int kTopK>
AFDEP_DEVICE uint32_t load_weight_of(const float* weights, int token, int k, int tokens) {
  if (token >= tokens) return 0;
  return load_input_word(weights + static_cast<int64_t>(token) * kTopK + k);
}

// Lane k: that of choice k; 0 for lanes beyond the top-k.
template <int kTopK>
AFDEP_DEVICE uint32_t load_weight(const float* weights, int token, int tokens) {
  if (lane_index() >= kTopK) return 0;
  return load_weight_of<kTopK>(weights, token, lane_index(), tokens);
}

// A block reads the tables of all sources and hands every choice to consume(unit, choice, id,
// weight), unit = source * kTokens + token. kBatch loads of a thread are in flight together.
template <int kSources, int kTokens, int kTopK, int kThreads, int kBatch, typename Consume>
AFDEP_DEVICE void read_table(const CommonArgs& args, const uint8_t* table, int64_t source_bytes,
                             uint32_t generation, const Consume& consume) {
  constexpr int kEntryPackets = (kTopK + 1) / 2;
  constexpr int kSourcePackets = kTokens * kEntryPackets;
  read_packets<kSources * kSourcePackets, kThreads, kBatch>(
      args, generation,
      [&](int i) {
        return table + i / kSourcePackets * source_bytes + i % kSourcePackets * kPacketBytes;
      },
      [&](int i) {
        return Awaited{kPhaseTable, static_cast<uint32_t>(i / kSourcePackets),
                       static_cast<uint32_t>(i % kSourcePackets / kEntryPackets)};
      },
      [&](int i, const Packet& packet) {
        const int unit = i / kEntryPackets;
        const int choice = i % kEntryPackets * 2;
        consume(unit, choice, packet.word[0] & 0xffffu, packet.word[1]);
        if (choice + 1 < kTopK) consume(unit, choice + 1, packet.word[0] >> 16, packet.word[2]);
      });
}

}  // namespace afdep
