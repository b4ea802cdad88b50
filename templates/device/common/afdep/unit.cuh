// What receive tells reply of a (source, token) unit, in packets of the rank's own workspace. A
// packet says for which generation it was written, so reply may look before receive has ended.
#pragma once

#include "afdep/packet.cuh"
#include "afdep/rank.cuh"

namespace afdep {

// A unit's rows on this worker in top-k order, none left out in between, then kNoRow; word kTopK is
// the unit's reply slot where replies have slots. The same on every lane.
template <int kTopK, int kPacketCount>
struct UnitRows {
  static constexpr int kChoices = kTopK;
  static constexpr int kPackets = kPacketCount;
  Packet packet[kPackets];

  AFDEP_DEVICE uint32_t word(int i) const {
    return packet[i / kPacketWords].word[i % kPacketWords];
  }
  AFDEP_DEVICE bool has(int i) const { return word(i) != static_cast<uint32_t>(kNoRow); }
  AFDEP_DEVICE bool empty() const { return !has(0); }
  AFDEP_DEVICE bool written_for(uint32_t generation) const {
    bool all = true;
#pragma unroll
    for (int i = 0; i < kPackets; ++i) all &= packet[i].generation == generation;
    return all;
  }
};

template <typename Unit>
AFDEP_DEVICE Unit load_unit(const uint8_t* at) {
  Unit unit;
#pragma unroll
  for (int i = 0; i < Unit::kPackets; ++i) unit.packet[i] = load_packet(at + i * kPacketBytes);
  return unit;
}

// By reply, before it awaits receive: looks again until receive has written the unit for
// `generation`, but not for long.
template <typename Unit>
AFDEP_DEVICE void look_for_unit(Unit& unit, const uint8_t* at, uint32_t generation) {
#pragma unroll 1
  for (int look = 1; look < kEarlyLooks && !unit.written_for(generation); ++look) {
    unit = load_unit<Unit>(at);
  }
}

// By one warp of receive. lane_row: lane k's row of choice k, or kNoRow; slot: the unit's reply
// slot.
template <typename Unit>
AFDEP_DEVICE void store_unit(uint8_t* at, int lane_row, uint32_t chosen, uint32_t slot,
                             uint32_t generation) {
  // Lane j takes the j-th row that there is.
  int from = 31;  // has none
  int before = 0;
#pragma unroll
  for (int k = 0; k < Unit::kChoices; ++k) {
    const bool is_row = (chosen >> k & 1u) != 0;
    if (is_row && before == lane_index()) from = k;
    if (is_row) ++before;
  }
  uint32_t word = shuffle(static_cast<uint32_t>(lane_row), from);
  if (lane_index() == Unit::kChoices) word = slot;
  const int first = lane_index() * kPacketWords & 31;
  Packet packet;
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) packet.word[i] = shuffle(word, (first + i) & 31);
  packet.generation = generation;
  if (lane_index() < Unit::kPackets) store_packet(at + lane_index() * kPacketBytes, packet);
}

}  // namespace afdep
