// Generation numbers: which exchange of a buffer a flag, a packet or a count belongs to.
// Source: docs/protocol.md, rule 1.
#pragma once

#include "afdep/types.h"

#if defined(__CUDACC_RTC__)
#define AFDEP_HOST_DEVICE __host__ __device__
#else
#define AFDEP_HOST_DEVICE
#endif

namespace afdep {

// Generations run 1, 2, ..., kLastGeneration, 1, ...: never 0, which zeroed memory holds, and with
// an even count, so that parity alternates across the wrap too. At 10 us an exchange the wrap comes
// every 12 hours.
constexpr uint32_t kLastGeneration = 0xfffffffeu;

// What control words and done words hold before the first exchange.
constexpr uint32_t kGenerationBeforeFirst = kLastGeneration;

AFDEP_HOST_DEVICE constexpr uint32_t next_generation(uint32_t generation) {
  return generation == kLastGeneration ? 1u : generation + 1u;
}

AFDEP_HOST_DEVICE constexpr uint32_t previous_generation(uint32_t generation) {
  return generation == 1u ? kLastGeneration : generation - 1u;
}

// Which half of a double inbox this generation uses.
AFDEP_HOST_DEVICE constexpr uint32_t half_of(uint32_t generation) { return generation & 1u; }

}  // namespace afdep
