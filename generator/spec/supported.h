// What this build serves of what a spec may say.
#pragma once

#include "generator/spec/spec.h"
#include "runtime/support/diagnostic.h"

namespace afdep::spec {

inline constexpr int kServedRanks = 64;  // of both roles together

// E404 for each value that is legal but not served, placed on its key, with the nearest served one.
// Precondition: the spec is valid.
Diagnostics unsupported(const Spec& spec);

}  // namespace afdep::spec
