// Words for what a run found.
#pragma once

#include "runtime/emulator/execution.h"
#include "runtime/emulator/scheduler.h"
#include "runtime/support/result.h"

namespace afdep::emulator {

// Lines of a report on waiters, at most; a last line counts the rest.
constexpr int kReportedLines = 40;

// "ballot": the device function.
const char* name_of(Collective kind);

// kVerification. For a stall, every waiter: rank, kernel, block, threads and what they wait for;
// for a divergence, every thread of the warp or block. Equal lines are one. The note says how to
// run the same schedule again.
Failure describe(const Fault& fault, const Scheduler& scheduler, const ScheduleOptions& options);

}  // namespace afdep::emulator
