// The plan for programs: the output of `afdep-gen plan --json`.
#pragma once

#include <string>

#include "generator/plan/plan.h"

namespace afdep::plan {

// Every field of the plan under its name, indented by two spaces, ending in a newline. Bytes are
// integers but for traffic, which is an expectation; times are microseconds, timeouts milliseconds.
std::string to_json(const ExchangePlan& plan);

}  // namespace afdep::plan
