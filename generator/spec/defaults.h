// The values of keys that a spec does not give.
#pragma once

#include "generator/spec/spec.h"

namespace afdep::spec {

// A spec that gives nothing: every key with a fixed default has it.
Spec default_spec();

// Fills in what depends on other keys and is not given: the preset's numbers (placed at the
// preset), shared_experts.mode by the count, capacity.buckets = [tokens_per_rank].
void fill_dependent_defaults(Spec& spec);

}  // namespace afdep::spec
