#include "generator/spec/sink.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace afdep::spec {

void Sink::add(ErrorCode code, Place place, std::string message, std::string note) {
  if (full()) return;
  const auto after = std::upper_bound(
      errors_.begin(), errors_.end(), place, [](const Place& a, const Diagnostic& b) {
        return std::tie(a.line, a.column) < std::tie(b.place.line, b.place.column);
      });
  errors_.insert(after, {code, std::move(place), std::move(message), std::move(note)});
}

Diagnostics Sink::take() {
  if (full()) {
    Diagnostic& last = errors_.back();
    last.note += last.note.empty() ? "" : "; ";
    last.note += fmt::format("only the first {} errors are shown", kMax);
  }
  return std::exchange(errors_, {});
}

std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::size_t end = std::min(text.size(), kLongest);
  // Never cut inside a UTF-8 sequence.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  std::string result;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  if (end < text.size()) result += "...";
  return result;
}

std::string quoted(std::string_view text) { return "\"" + shown(text) + "\""; }

}  // namespace afdep::spec
