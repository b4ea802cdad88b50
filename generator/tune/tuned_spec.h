// A choice as a spec.
#pragma once

#include <string>
#include <string_view>

#include "generator/spec/spec.h"
#include "generator/tune/select.h"
#include "generator/tune/state.h"

namespace afdep::tune {

// The spec with kernel.num_sms, kernel.protocol and kernel.tuned_on set.
spec::Spec tuned(const spec::Spec& spec, const Choice& choice, const std::string& gpu);

// Its canonical text behind a comment that says where the choice is from, with the figures. No
// date: the same figures give the same bytes.
std::string tuned_text(const spec::Spec& spec, const Choice& choice, const Identity& identity);

// The warning, two lines, for a spec that was tuned on another GPU than `gpu`; empty if it was not.
std::string tuned_elsewhere(const spec::Spec& spec, std::string_view gpu);

}  // namespace afdep::tune
