// Kernels that record when each warp passes each step.
#pragma once

#include <string_view>

#include "generator/plan/plan.h"

namespace afdep::plan {

// The region of each role's workspace that holds the records: a block for each kernel of each of
// the last exchanges, in it records of a CTA's warps, and of each warp one for each step.
inline constexpr std::string_view kTraceRegion = "trace";

// The same plan with recording kernels, and with a digest of its own, so that traced and untraced
// ranks refuse each other. Everything else keeps its place. Precondition: the plan is not traced.
ExchangePlan traced(ExchangePlan plan);

}  // namespace afdep::plan
