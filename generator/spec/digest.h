// What ranks compare at start, and what generated code is keyed by.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/spec/spec.h"

namespace afdep::spec {

// Key and value of all that the exchange depends on, resolved: presets, ratio, `auto` and defaults
// are replaced by what follows from them; `name`, `cache`, `stats` and `kernel.tuned_on` are left
// out. Two specs that differ in a field differ here under its name. Precondition: spec::parse
// accepted the spec.
std::vector<std::pair<std::string, std::string>> resolved_values(const Spec& spec);

// XXH3, 128 bits, of resolved_values() as 32 lower-case hexadecimal digits.
std::string digest(const Spec& spec);

// The digest of kernels that differ from what the spec alone gives, by an option of the generator.
std::string variant_digest(std::string_view digest, std::string_view variant);

}  // namespace afdep::spec
