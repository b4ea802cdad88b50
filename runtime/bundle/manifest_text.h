// The manifest as JSON: keys sorted, two spaces a level, one newline at the end.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep::bundle {

std::string print(const Manifest& manifest);

// The inverse of print(). `file` is where the text is from, for messages. Fails with kBundle,
// naming the field, if the text is truncated, damaged or no manifest, and with kVersionSkew if
// another format, afdep or ABI version wrote it.
Result<Manifest> parse_manifest(std::string_view text, const std::string& file);

// Paths of the files that the manifest of any version lists; nothing if the text is no manifest.
std::optional<std::set<std::string>> listed_files(const std::string& text);

}  // namespace afdep::bundle
