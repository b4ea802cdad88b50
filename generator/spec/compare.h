// Equality of specs by what they say, not where.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "generator/spec/spec.h"

namespace afdep::spec {

// Each key and the text of its value as the spec has it, given or not, in the order of the
// documentation. An ablation that is not given is false.
std::vector<std::pair<std::string, std::string>> written_values(const Spec& spec);

// True if every key has the same value in both; places and whether a key is given do not matter.
bool same_values(const Spec& a, const Spec& b);

}  // namespace afdep::spec
