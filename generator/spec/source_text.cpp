#include "generator/spec/source_text.h"

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace afdep::spec {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629), or 0.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : std::uint8_t{0};
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (!continues(1) || !continues(2)) return 0;
    const bool overlong = lead == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = lead == 0xED && byte(1) > 0x9F;
    return overlong || surrogate ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (!continues(1) || !continues(2) || !continues(3)) return 0;
    const bool overlong = lead == 0xF0 && byte(1) < 0x90;
    const bool beyond = lead == 0xF4 && byte(1) > 0x8F;
    return overlong || beyond ? 0 : 4;
  }
  return 0;
}

Failure too_large(const std::string& file) {
  return Failure(Diagnostic{ErrorCode::kSpecUnreadable,
                            {file, 0, 0},
                            fmt::format("the file is larger than {} bytes", kMaxFileBytes),
                            "a spec is a few hundred lines at most; check the path"});
}

Failure unreadable(const std::string& file, std::string message, std::string note) {
  return Failure(
      Diagnostic{ErrorCode::kSpecUnreadable, {file, 0, 0}, std::move(message), std::move(note)});
}

}  // namespace

Result<std::string> read_text(const std::filesystem::path& path) {
  const std::string file = path.string();
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return unreadable(file,
                      fmt::format("cannot open the file: {}",
                                  error ? error.message() : "No such file or directory"),
                      "check the path of the spec");
  }
  if (std::filesystem::is_directory(status)) {
    return unreadable(file, "is a directory, not a spec file",
                      "name the spec inside it, such as DIR/spec.yaml");
  }
  errno = 0;
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    const int reason = errno;
    return unreadable(
        file, fmt::format("cannot open the file: {}", std::generic_category().message(reason)),
        "check its permissions");
  }
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (stream.bad()) {
    return unreadable(file, "reading the file failed", "check the disk and the permissions");
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.size() > kMaxFileBytes) return too_large(file);
  return text;
}

Result<void> check_text(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) return too_large(file);
  Place place{file, 1, 1};
  const auto refuse = [&](std::string message, std::string note) {
    return Failure(
        Diagnostic{ErrorCode::kSpecUnreadable, place, std::move(message), std::move(note)});
  };
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (length == 0) {
      return refuse(fmt::format("byte 0x{:02x} is not UTF-8", byte), "save the file as UTF-8");
    }
    if (byte == '\t') return refuse("a tab", "indent with spaces");
    if ((byte < 0x20 && byte != '\n' && byte != '\r') || byte == 0x7F) {
      return refuse(fmt::format("control character 0x{:02x}", byte), "remove it");
    }
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      place.column += static_cast<int>(length);
    }
    text.remove_prefix(length);
  }
  return {};
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  return text.starts_with(kMark) ? text.substr(kMark.size()) : text;
}

}  // namespace afdep::spec
