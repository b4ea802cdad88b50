// A Spec back to YAML.
#pragma once

#include <string>

#include "generator/spec/spec.h"

namespace afdep::spec {

// The given keys, in the order of the documentation: parse(print(spec)) has the same values.
std::string print(const Spec& spec);

// Every key with the value that holds, each followed by "# given", "# default" or "# preset NAME".
// A key that holds without being written (ranks from a ratio, say) stands in a comment line, so
// that this text, too, parses to the same values. Precondition: spec::parse accepted the spec.
std::string print_resolved(const Spec& spec);

}  // namespace afdep::spec
