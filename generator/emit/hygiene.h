// What holds of every emitted file, whatever the template.
#pragma once

#include <string_view>

#include "runtime/support/diagnostic.h"

namespace afdep::emit {

inline constexpr int kMaxEmittedColumns = 120;

// Empty if the text is clean: no preprocessor conditional, no tab, carriage return or trailing
// space, no "//%" or "${" left over, no line over kMaxEmittedColumns characters, no two blank lines
// in a row, no blank first or last line, and one newline at the end. Each diagnostic has the place
// in `file_name`.
Diagnostics check_emitted(std::string_view text, std::string_view file_name);

}  // namespace afdep::emit
