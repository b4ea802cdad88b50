// Decides an exchange: spec and topology in, plan out.
#pragma once

#include "generator/plan/plan.h"
#include "generator/spec/spec.h"
#include "generator/topology/topology.h"
#include "runtime/support/result.h"

namespace afdep::plan {

// Precondition: spec::parse accepted the spec. Fails with kLaunch where a kernel does not fit an
// SM, saying which and by how much. A pure function: the same spec gives the same plan.
Result<ExchangePlan> plan(const spec::Spec& spec, const topology::Topology& topology);

}  // namespace afdep::plan
