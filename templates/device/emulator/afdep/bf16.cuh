// BF16 pairs in 32-bit words: element 0 in the low half. Bit for bit what
// device/cuda/afdep/bf16.cuh computes.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

namespace afdep {

AFDEP_DEVICE uint32_t bits_of(float value) { return __builtin_bit_cast(uint32_t, value); }
AFDEP_DEVICE float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

AFDEP_DEVICE float low_bf16(uint32_t pair) { return float_of(pair << 16u); }
AFDEP_DEVICE float high_bf16(uint32_t pair) { return float_of(pair & 0xffff0000u); }

// Rounds to nearest even; a NaN becomes 0x7fff.
AFDEP_DEVICE uint32_t pack_bf16(float low, float high) {
  const auto round = [](float value) -> uint32_t {
    const uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffu;  // a NaN
    // Half a unit less one, plus the last kept bit: a tie carries only into an odd number.
    return (bits + 0x7fffu + (bits >> 16u & 1u)) >> 16u;
  };
  return round(high) << 16u | round(low);
}

// IEEE additions that no compiler contracts or reorders: compiled with -ffp-contract=off. CUDA's
// add has one NaN.
AFDEP_DEVICE float add(float a, float b) {
  const float sum = a + b;
  return sum == sum ? sum : float_of(0x7fffffffu);
}

}  // namespace afdep
