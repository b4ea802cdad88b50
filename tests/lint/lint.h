// Rules of emitted kernels that take a syntax tree to check; generator/emit/hygiene.h has those
// that take only text.
#pragma once

#include <string>
#include <vector>

#include "tests/lint/ast.h"

namespace afdep::lint {

// Findings in the emitted file itself, never in the headers that it includes, by line and column:
// - a condition (if, while, do, for, switch, ?:, an operand of && or ||) that folds to a constant;
// - a constant at namespace scope that nothing refers to;
// - inline assembly, raw atomics, CUDA built-ins and other reserved names: those belong into the
// device headers;
// - a preprocessor directive other than #include and #pragma;
// - anything that Clang warns of.
// `headers` are absolute paths as of device_headers().
std::vector<Finding> lint_emitted(const std::string& file_name, const std::string& text,
                                  const std::vector<File>& headers);

}  // namespace afdep::lint
