// A trace for people: a file for Perfetto or chrome://tracing, and a table.
#pragma once

#include <string>
#include <vector>

#include "generator/trace/stamps.h"
#include "runtime/bundle/manifest.h"

namespace afdep::trace {

// Chrome's trace event format: ranks are processes, warps threads ("CTA 3 warp 5"); a slice for
// each kernel and in it one for each step. Times are microseconds from the exchange's first stamp.
// stamps: of one exchange, as of_exchange() returns them.
std::string to_chrome(const std::vector<Stamp>& stamps, const bundle::Manifest& manifest);

// When warps of an operation passed a step, microseconds from the exchange's first stamp.
struct StepTimes {
  bundle::Operation operation = bundle::Operation::kDispatch;
  TraceStep step = kTraceStart;
  int warps = 0;
  double first_us = 0;
  double median_us = 0;
  double last_us = 0;
};

// Of all ranks together, by operation and median time.
std::vector<StepTimes> summarize(const std::vector<Stamp>& stamps);

}  // namespace afdep::trace
