// A spec as the command line names it: a path, or "-" for standard input.
#pragma once

#include <string>

#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::cli {

struct SpecText {
  std::string text;
  std::string file;  // as diagnostics name it; "<stdin>" for "-"
};

// E000 if it cannot be read or is too large; the text is not checked further.
Result<SpecText> read_spec(const std::string& name);

// read_spec, then spec::parse.
Result<spec::Spec> load_spec(const std::string& name);

}  // namespace afdep::cli
