// A deployment spec file to a Spec, or to all of its errors.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::spec {

// Reads and validates a spec; on failure every error of the file with its place, in file order.
// If the spec is valid, what this build does not serve is refused with E404.
// `file_name` is only named in diagnostics. Never throws for any text.
Result<Spec> parse(std::string_view text, std::string file_name);

// parse() of a file; E000 if it cannot be read.
Result<Spec> load(const std::filesystem::path& path);

}  // namespace afdep::spec
