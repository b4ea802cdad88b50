// What ranks compare at start, and what generated code is keyed by.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "generator/spec/spec.h"

namespace afdep::spec {

// Key and value of all that the exchange depends on, resolved: presets, ratio, `auto` and defaults
// are replaced by what follows from them; `name`, `cache` and `stats` are left out. Two specs that
// differ in a field differ here under its name. Precondition: spec::parse accepted the spec.
std::vector<std::pair<std::string, std::string>> resolved_values(const Spec& spec);

// XXH3, 128 bits, of resolved_values() as 32 lower-case hexadecimal digits.
std::string digest(const Spec& spec);

}  // namespace afdep::spec
