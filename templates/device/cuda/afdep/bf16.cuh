// BF16 pairs in 32-bit words: element 0 in the low half.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

namespace afdep {

AFDEP_DEVICE float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16u); }
AFDEP_DEVICE float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Rounds to nearest even; a NaN becomes 0x7fff.
AFDEP_DEVICE uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

AFDEP_DEVICE uint32_t bits_of(float value) { return __float_as_uint(value); }
AFDEP_DEVICE float float_of(uint32_t bits) { return __uint_as_float(bits); }

// IEEE additions that no compiler contracts or reorders.
AFDEP_DEVICE float add(float a, float b) { return __fadd_rn(a, b); }

}  // namespace afdep
