// A YAML tree back to text on one line.
#pragma once

#include <string>

#include "generator/spec/node.h"

namespace afdep::matrix {

// Flow style: plain scalars as written, quoted ones in double quotes, [a, b] and {key: value}.
std::string to_text(const spec::Node& node);

}  // namespace afdep::matrix
