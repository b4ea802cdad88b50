// Waits for packets: a packet has arrived when its generation is the awaited one.
#pragma once

#include "afdep/wait.cuh"

namespace afdep {

// What a wait that gave up returns: every expert id in it reads as "no expert".
constexpr uint32_t kNoPayload = 0xffffffffu;

// Waits for one packet.
AFDEP_DEVICE Packet await_packet(const CommonArgs& args, const uint8_t* at, uint32_t generation,
                                 const Awaited& awaited) {
  Packet packet = load_packet(at);
  Deadline deadline{0, 0};
  while (packet.generation != generation) {
    if (give_up(deadline, args, at, awaited, generation, packet.generation, generation)) {
      return Packet{{kNoPayload, kNoPayload, kNoPayload}, generation};
    }
    packet = load_packet(at);
  }
  return packet;
}

// Waits for those of kCount packets whose bit in `wanted` is set; all loads of a round are in
// flight together. The others are left as they are; one whose wait gave up reads as kNoPayload.
template <int kCount>
AFDEP_DEVICE void await_packets(const CommonArgs& args, Packet (&packets)[kCount],
                                const uint8_t* const (&at)[kCount], uint32_t wanted,
                                uint32_t generation, const Awaited (&awaited)[kCount]) {
  uint32_t missing = wanted;
  Deadline deadline{0, 0};
  while (missing != 0) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1u) != 0) packets[i] = load_packet(at[i]);
    }
    uint32_t still_missing = 0;
    uint32_t seen = 0;
    const uint8_t* where = nullptr;
    Awaited whom{};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      if ((missing >> i & 1u) != 0 && packets[i].generation != generation) {
        still_missing |= 1u << i;
        seen = packets[i].generation;
        where = at[i];
        whom = awaited[i];
      }
    }
    missing = still_missing;
    if (missing != 0 && give_up(deadline, args, where, whom, generation, seen, generation)) break;
  }
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if ((missing >> i & 1u) != 0) {
      packets[i] = Packet{{kNoPayload, kNoPayload, kNoPayload}, generation};
    }
  }
}

}  // namespace afdep
