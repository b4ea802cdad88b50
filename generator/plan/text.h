// The plan as a page to read: plan.txt of a bundle and the output of `afdep-gen plan`.
#pragma once

#include <string>

#include "generator/plan/plan.h"

namespace afdep::plan {

// Lines of at most 120 columns, each ending in a newline; the same plan gives the same bytes.
std::string print(const ExchangePlan& plan);

}  // namespace afdep::plan
