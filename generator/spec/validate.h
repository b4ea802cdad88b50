// The rules between the keys of a spec, whatever a build serves.
#pragma once

#include "generator/spec/origin.h"
#include "generator/spec/sink.h"
#include "generator/spec/spec.h"

namespace afdep::spec {

// Reports every rule that the decoded spec breaks, with the remedy. A rule is skipped if a key that
// it needs was refused already, so that one mistake gives one error.
void validate(const Spec& spec, const Origin& origin, Sink& sink);

}  // namespace afdep::spec
