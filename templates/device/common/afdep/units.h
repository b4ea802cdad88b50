// The units in which kernels move data.
#pragma once

#include "afdep/types.h"

namespace afdep {

// 16 bytes, 16-aligned in memory. Accessed as four words: not single-copy atomic.
struct alignas(16) Vector {
  uint32_t word[4];
};

constexpr int kPacketBytes = 16;
constexpr int kPacketWords = 3;  // of payload

// Flag in data: 12 bytes of payload and the generation that they belong to, stored and loaded as
// one .b128, so that no reader sees half of it. 16-aligned in memory.
struct Packet {
  uint32_t word[kPacketWords];
  uint32_t generation;
};

// Whom a wait is for: goes into the record of a wait that expires.
struct Awaited {
  uint32_t phase;  // Phase
  uint32_t peer;   // index within the other role
  uint32_t item;   // token, packet or chunk
};

}  // namespace afdep
