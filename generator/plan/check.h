// Refuses a plan that no kernel could run safely, before anything is emitted from it.
// Source: docs/plan.md, "Rules", where each rule has its reason.
#pragma once

#include <string_view>

#include "generator/plan/plan.h"
#include "runtime/support/result.h"

namespace afdep::plan {

// The one inbox region that may have a single half: what collect_view hands out. Its address is the
// same in every exchange, and the next dispatch, which ends the view's life, orders its reuse.
inline constexpr std::string_view kViewRegion = "view";

// E704 for each broken rule, `plan rule "pairing": bucket 8: ...`; every broken rule of the plan at
// once.
Result<void> check(const ExchangePlan& plan);

}  // namespace afdep::plan
