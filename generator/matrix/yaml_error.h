// What the YAML layer of specs refuses, in the words of a matrix file.
#pragma once

#include <string_view>

#include "runtime/support/diagnostic.h"

namespace afdep::matrix {

inline constexpr std::string_view kExample = "docs/matrix.md shows a whole file";

// The same error as E009.
Diagnostic as_matrix_error(Diagnostic error);

}  // namespace afdep::matrix
