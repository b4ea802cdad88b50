// Stamps of a traced kernel: when each warp passed each step. Only traced kernels include it.
#pragma once

#include "afdep/clocks.cuh"
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"
#include "afdep/trace_abi.h"

namespace afdep {

// Lives in every thread; lane 0 of each warp records. The records of an exchange lie kOffset bytes
// into the workspace, those of the next one kExchangeBytes behind them; each block has kWarps
// places.
template <int64_t kOffset, int64_t kExchangeBytes, int kWarps>
class WarpTrace {
 public:
  AFDEP_DEVICE WarpTrace() {
    if (lane_index() == 0) start_ = read_clocks();
  }

  // Right after await_previous_kernel.
  AFDEP_DEVICE void awaited() {
    if (lane_index() == 0) awaited_ = read_clocks();
  }

  // As soon as the generation is known, before the first mark.
  AFDEP_DEVICE void open(uint8_t* workspace, uint32_t generation) {
    generation_ = generation;
    records_ = workspace + kOffset +
               static_cast<int64_t>(generation % kTraceExchanges) * kExchangeBytes +
               static_cast<int64_t>(block_index() * kWarps + warp_index()) * kTraceSteps *
                   static_cast<int64_t>(sizeof(TraceRecord));
    record(kTraceStart, start_);
    record(kTraceAwaited, awaited_);
  }

  AFDEP_DEVICE void mark(TraceStep step) {
    if (lane_index() == 0) record(step, read_clocks());
  }

  // The first call alone is recorded.
  AFDEP_DEVICE void first(TraceStep step) {
    if (!seen_first_) mark(step);
    seen_first_ = true;
  }

 private:
  AFDEP_DEVICE void record(TraceStep step, const ClockReading& reading) {
    if (lane_index() != 0) return;
    uint8_t* const to = records_ + static_cast<int64_t>(step) * sizeof(TraceRecord);
    store_vector(
        to, {{static_cast<uint32_t>(reading.ns), static_cast<uint32_t>(reading.ns >> 32),
              static_cast<uint32_t>(reading.cycles), static_cast<uint32_t>(reading.cycles >> 32)}});
    store_vector(to + 16, {{generation_, static_cast<uint32_t>(step), reading.sm, 0}});
  }

  ClockReading start_{};
  ClockReading awaited_{};
  uint8_t* records_ = nullptr;
  uint32_t generation_ = 0;
  bool seen_first_ = false;
};

}  // namespace afdep
