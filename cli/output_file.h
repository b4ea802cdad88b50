// Files that the tools write beside bundles.
#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/support/result.h"

namespace afdep::cli {

// Replaces the file as a whole, or leaves it as it was and fails with E803. A device or a pipe is
// written to.
Result<void> write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace afdep::cli
