// What is refused before any YAML is looked at: size, encoding and characters of a spec file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "runtime/support/result.h"

namespace afdep::spec {

inline constexpr std::size_t kMaxFileBytes = 1'000'000;

// The bytes of a file, at most kMaxFileBytes of them. E000 if it is a directory, missing,
// unreadable or larger; a larger file is not read to its end.
Result<std::string> read_text(const std::filesystem::path& path);

// E000 at the first byte that is not UTF-8, or is a tab or another control character than a line
// break, and for a text over kMaxFileBytes.
Result<void> check_text(std::string_view text, const std::string& file);

// `text` without a UTF-8 byte order mark.
std::string_view without_byte_order_mark(std::string_view text);

}  // namespace afdep::spec
