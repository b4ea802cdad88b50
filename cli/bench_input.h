// What afdep-bench measures: a spec, compiled for this GPU, or a bundle with its cubins.
#pragma once

#include <string>
#include <string_view>

#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep::cli {

// A folder is a bundle, anything else a spec ("-" for standard input).
bool is_bundle(const std::string& name);

Result<bundle::Bundle> read_input_bundle(const std::string& name);

// The spec's kernels for `arch` and no other; with `trace` those that record their steps.
Result<bundle::Bundle> compile_spec(const std::string& name, std::string_view arch,
                                    bool trace = false);

}  // namespace afdep::cli
