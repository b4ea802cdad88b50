#include "generator/emit/hygiene.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace afdep::emit {
namespace {

// Emitted text is UTF-8: a column is a character, so continuation bytes do not count.
int columns_of(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// `#if`, `#ifdef`, `#elif`, `#else` and the like, with any space around the '#'.
bool is_conditional(std::string_view line) {
  constexpr std::array<std::string_view, 4> kStems = {"if", "elif", "else", "endif"};
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string_view::npos || line[hash] != '#') return false;
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string_view::npos) return false;
  return std::ranges::any_of(
      kStems, [&](std::string_view stem) { return line.substr(word).starts_with(stem); });
}

}  // namespace

Diagnostics check_emitted(std::string_view text, std::string_view file_name) {
  Diagnostics found;
  int line_number = 0;
  const auto report = [&](std::size_t at, std::string message) {
    found.push_back({ErrorCode::kToolchain,
                     {std::string(file_name), line_number, static_cast<int>(at) + 1},
                     "emitted text: " + std::move(message),
                     {}});
  };
  if (text.empty()) {
    line_number = 1;
    report(0, "is empty");
    return found;
  }

  bool last_was_blank = true;  // so that a blank first line is refused
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    ++line_number;
    if (is_conditional(line)) report(line.find('#'), "preprocessor conditional");
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kRefused = {
        {{"\t", "tab"},
         {"\r", "carriage return"},
         {"//%", "directive left over"},
         {"${", "substitution left over"}}};
    for (const auto& [pattern, what] : kRefused) {
      if (const std::size_t where = line.find(pattern); where != std::string_view::npos) {
        report(where, std::string(what));
      }
    }
    if (line.ends_with(' ')) report(line.find_last_not_of(' ') + 1, "trailing space");
    if (const int columns = columns_of(line); columns > kMaxEmittedColumns) {
      report(kMaxEmittedColumns, fmt::format("{} columns, over {}", columns, kMaxEmittedColumns));
    }
    if (line.empty() && last_was_blank) {
      report(0, line_number == 1 ? "blank first line" : "two blank lines in a row");
    }
    last_was_blank = line.empty();
    if (end == text.size()) report(line.size(), "no newline at the end");
    at = end + 1;
  }
  // A single blank last line; more of them are reported above.
  if (text.ends_with("\n\n")) report(0, "blank last line");
  return found;
}

}  // namespace afdep::emit
