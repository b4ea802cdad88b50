// The clocks that traced kernels stamp their steps with.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

namespace afdep {

struct ClockReading {
  uint64_t ns;      // shared by all SMs; ticks may be far apart
  uint64_t cycles;  // of this SM
  uint32_t sm;
};

// Neither the compiler nor the hardware moves an instruction of this thread across it that is
// volatile or touches memory; a store before it may still be under way.
AFDEP_DEVICE ClockReading read_clocks() {
  ClockReading reading;
  asm volatile("mov.u64 %0, %%globaltimer;\n\tmov.u64 %1, %%clock64;\n\tmov.u32 %2, %%smid;"
               : "=l"(reading.ns), "=l"(reading.cycles), "=r"(reading.sm)
               :
               : "memory");
  return reading;
}

}  // namespace afdep
