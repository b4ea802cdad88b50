// What a traced kernel records and the host reads: the steps of one warp in one kernel.
#pragma once

#include "afdep/types.h"

namespace afdep {

// A stamp closes the step that it names. A warp passes through some of them, in this order.
enum TraceStep : uint32_t {
  kTraceStart = 0,         // the first instruction
  kTraceAwaited = 1,       // the kernel before this one has ended
  kTraceRoutesRead = 2,    // bulk dispatch: the slice's choices are in shared memory
  kTraceDoneSeen = 3,      // dispatch: the workers have read the exchange before the last
  kTraceTableSeen = 4,     // receive: table, or counts
  kTraceChoicesSeen = 5,   // bulk receive
  kTraceRanked = 6,        // choices have ranks, or slices and experts their places
  kTraceTableSent = 7,     // dispatch: table, or counts and choices
  kTraceRowsSent = 8,      // dispatch
  kTraceFirstRow = 9,      // receive: the first row that this warp waited for is there
  kTraceRowsWritten = 10,  // receive
  kTraceFirstReply = 11,   // reply: the first one is on its way
  kTraceRepliesSent = 12,  // reply
  kTraceReplySeen = 13,    // collect: the replies of this warp's first token are there
  kTraceSummed = 14,       // collect
  kTraceEnd = 15,          // the last instruction
};
constexpr int kTraceSteps = 16;

// Blocks of records of one exchange: dispatch or receive, then collect or reply.
constexpr int kTraceKernels = 2;

// Exchanges that the records of a kernel hold before the oldest is overwritten.
constexpr int kTraceExchanges = 4;

// One stamp by lane 0 of a warp. Both clocks are read together: `ns` is shared by all SMs but may
// tick slowly, `cycles` counts the SM's own clock.
struct alignas(16) TraceRecord {
  uint64_t ns;
  uint64_t cycles;
  uint32_t generation;  // of the exchange; another one than expected: not recorded
  uint32_t step;        // TraceStep
  uint32_t sm;
  uint32_t reserved;
};
static_assert(sizeof(TraceRecord) == 32, "TraceRecord is read by the host");

}  // namespace afdep
