#include "cli/text_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace afdep::cli {
namespace {

constexpr std::size_t kContext = 3;
constexpr std::string_view kNoNewline = "\\ No newline at end of file\n";

// Lines with their newline, so that a missing last one is a difference.
std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

// What is compared of a line: the line, or all of it but repeated spaces behind its indentation.
std::vector<std::string> keys_of(const std::vector<std::string_view>& lines, Spaces spaces) {
  std::vector<std::string> keys(lines.begin(), lines.end());
  if (spaces == Spaces::kExact) return keys;
  for (std::string& key : keys) {
    const auto text = std::ranges::find_if(key, [](char c) { return c != ' '; });
    const auto last =
        std::unique(text, key.end(), [](char a, char b) { return a == ' ' && b == ' '; });
    key.erase(last, key.end());
  }
  return keys;
}

// One line of the edit script: ' ' in both, '-' only in the old text, '+' only in the new.
struct Edit {
  char kind;
  std::string_view line;
};

// Myers' greedy algorithm. `furthest[k]` is how far along the old text a path on diagonal
// k = x - y gets with d edits; the copy kept for each d leads back from the end.
std::vector<Edit> edit_script(const std::vector<std::string_view>& old_lines,
                              const std::vector<std::string_view>& new_lines, Spaces spaces) {
  const std::vector<std::string> old_keys = keys_of(old_lines, spaces);
  const std::vector<std::string> new_keys = keys_of(new_lines, spaces);
  const auto n = static_cast<std::ptrdiff_t>(old_lines.size());
  const auto m = static_cast<std::ptrdiff_t>(new_lines.size());
  const std::ptrdiff_t most = n + m;
  const auto at = [&](const std::vector<std::ptrdiff_t>& furthest, std::ptrdiff_t k) {
    return furthest[static_cast<std::size_t>(k + most + 1)];
  };
  const auto goes_down = [&](const std::vector<std::ptrdiff_t>& furthest, std::ptrdiff_t k,
                             std::ptrdiff_t d) {
    return k == -d || (k != d && at(furthest, k - 1) < at(furthest, k + 1));
  };

  std::vector<std::vector<std::ptrdiff_t>> history;
  std::vector<std::ptrdiff_t> furthest(static_cast<std::size_t>(2 * most + 3), 0);
  for (std::ptrdiff_t d = 0, found = 0; found == 0; ++d) {
    history.push_back(furthest);
    for (std::ptrdiff_t k = -d; k <= d && found == 0; k += 2) {
      std::ptrdiff_t x = goes_down(furthest, k, d) ? at(furthest, k + 1) : at(furthest, k - 1) + 1;
      while (x < n && x - k < m &&
             old_keys[static_cast<std::size_t>(x)] == new_keys[static_cast<std::size_t>(x - k)]) {
        ++x;
      }
      furthest[static_cast<std::size_t>(k + most + 1)] = x;
      if (x >= n && x - k >= m) found = 1;
    }
  }

  std::vector<Edit> script;
  std::ptrdiff_t x = n;
  std::ptrdiff_t y = m;
  for (auto d = static_cast<std::ptrdiff_t>(history.size()) - 1; d >= 0; --d) {
    const std::vector<std::ptrdiff_t>& before = history[static_cast<std::size_t>(d)];
    const std::ptrdiff_t k = x - y;
    const bool down = goes_down(before, k, d);
    const std::ptrdiff_t from_x = d == 0 ? 0 : at(before, down ? k + 1 : k - 1);
    const std::ptrdiff_t from_y = d == 0 ? 0 : from_x - (down ? k + 1 : k - 1);
    while (x > from_x && y > from_y) {
      script.push_back({' ', old_lines[static_cast<std::size_t>(--x)]});
      --y;
    }
    if (d == 0) break;
    if (down) {
      script.push_back({'+', new_lines[static_cast<std::size_t>(--y)]});
    } else {
      script.push_back({'-', old_lines[static_cast<std::size_t>(--x)]});
    }
  }
  std::ranges::reverse(script);
  return script;
}

// "7,3", "7" for one line, and for none the line before it, as diff does.
std::string range(std::size_t first, std::size_t count) {
  if (count == 1) return fmt::format("{}", first + 1);
  return fmt::format("{},{}", count == 0 ? first : first + 1, count);
}

}  // namespace

std::string unified_diff(std::string_view old_text, std::string_view new_text,
                         std::string_view old_name, std::string_view new_name, Spaces spaces) {
  if (old_text == new_text) return {};
  const std::vector<Edit> script =
      edit_script(split_lines(old_text), split_lines(new_text), spaces);
  if (std::ranges::all_of(script, [](const Edit& edit) { return edit.kind == ' '; })) return {};
  std::string text = fmt::format("--- {}\n+++ {}\n", old_name, new_name);

  std::size_t old_line = 0;  // lines of each text before script[i]
  std::size_t new_line = 0;
  std::size_t i = 0;
  const auto step = [&](const Edit& edit) {
    old_line += edit.kind != '+';
    new_line += edit.kind != '-';
  };
  while (true) {
    const auto change = std::find_if(script.begin() + static_cast<std::ptrdiff_t>(i), script.end(),
                                     [](const Edit& edit) { return edit.kind != ' '; });
    if (change == script.end()) break;
    const auto first_change = static_cast<std::size_t>(change - script.begin());
    const std::size_t begin = std::max(i, first_change - std::min(first_change, kContext));
    while (i < begin) step(script[i++]);

    // The hunk ends where more than twice the context is unchanged, or at the end.
    std::size_t end = first_change;
    for (std::size_t j = first_change, same = 0; j < script.size() && same <= 2 * kContext; ++j) {
      same = script[j].kind == ' ' ? same + 1 : 0;
      if (same == 0) end = j + 1;
    }
    end = std::min(end + kContext, script.size());

    const std::size_t old_first = old_line;
    const std::size_t new_first = new_line;
    std::string body;
    for (; i < end; ++i) {
      body += script[i].kind;
      body += script[i].line;
      if (!script[i].line.ends_with('\n')) body += "\n" + std::string(kNoNewline);
      step(script[i]);
    }
    text += fmt::format("@@ -{} +{} @@\n{}", range(old_first, old_line - old_first),
                        range(new_first, new_line - new_first), body);
  }
  return text;
}

}  // namespace afdep::cli
