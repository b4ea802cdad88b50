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

// A block waits for packets 0 .. kPackets - 1, thread t for t, t + kThreads, ...; kBatch loads of a
// thread are in flight together. where(i): its address, null if nobody needs it; whose(i): what a
// fault record says of it; take(i, packet) gets it, kNoPayload if the wait gave up.
template <int kPackets, int kThreads, int kBatch, typename Where, typename Whose, typename Take>
AFDEP_DEVICE void read_packets(const CommonArgs& args, uint32_t generation, const Where& where,
                               const Whose& whose, const Take& take) {
#pragma unroll 1
  for (int first = thread_index(); first < kPackets; first += kThreads * kBatch) {
    const uint8_t* from[kBatch];
    Awaited awaited[kBatch];
    Packet packets[kBatch];
    uint32_t wanted = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int i = first + j * kThreads;
      packets[j] = Packet{{0, 0, 0}, 0};
      from[j] = nullptr;
      if (i >= kPackets) continue;
      from[j] = where(i);
      awaited[j] = whose(i);
      if (from[j] != nullptr) wanted |= 1u << j;
    }
    await_packets(args, packets, from, wanted, generation, awaited);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if ((wanted >> j & 1u) != 0) take(first + j * kThreads, packets[j]);
    }
  }
}

}  // namespace afdep
