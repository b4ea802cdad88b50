// Puts a mutant into the bundle of a plan.
#pragma once

#include <vector>

#include "generator/plan/plan.h"
#include "runtime/bundle/bundle.h"
#include "runtime/emulator/compiler.h"
#include "runtime/support/result.h"
#include "tests/mutation/mutant.h"

namespace afdep::mutation {

struct Applied {
  bundle::Bundle bundle;
  std::vector<emulator::HeaderText> headers;  // to compile it against
  int changes = 0;                            // places in emitted texts, headers and plan
};

// The device headers that a mutant changes.
std::vector<emulator::HeaderText> changed_headers(const Mutant& mutant);

// Fails if an edited bundle cannot be made; an edit that matches nothing changes nothing.
Result<Applied> apply(const Mutant& mutant, const plan::ExchangePlan& plan);

}  // namespace afdep::mutation
