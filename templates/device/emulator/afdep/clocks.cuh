// The clocks that traced kernels stamp their steps with, on the CPU.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

extern "C" {
uint64_t afdep_emu_schedule_ns();
}

namespace afdep {

struct ClockReading {
  uint64_t ns;      // virtual time, and a nanosecond for each access of any thread
  uint64_t cycles;  // the same
  uint32_t sm;      // 0
};

// In the order of the schedule.
AFDEP_DEVICE ClockReading read_clocks() {
  const uint64_t now = afdep_emu_schedule_ns();
  return {now, now, 0};
}

}  // namespace afdep
