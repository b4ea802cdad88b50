// Whether the device headers of CUDA and of the emulator offer kernels the same names.
#pragma once

#include <string>
#include <vector>

#include "tests/lint/ast.h"

namespace afdep::lint {

// Differences between the headers below /device/cuda and /device/emulator: a header that only one
// side has, or a name in namespace afdep (not in afdep::detail, which is each side's own) that one
// side lacks or declares with another type. Values of constants may differ. `headers` are as of
// device_headers(). Function bodies are not read, so built-ins and assembly do not matter.
std::vector<std::string> declaration_differences(const std::vector<File>& headers);

}  // namespace afdep::lint
