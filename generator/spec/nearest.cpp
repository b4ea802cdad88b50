#include "generator/spec/nearest.h"

#include <algorithm>
#include <vector>

namespace afdep::spec {

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: a swap looks back two.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const int substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  constexpr std::size_t kLongestWord = 64;  // no key or name is longer
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  int best_distance = 0;
  for (const std::string_view candidate : candidates) {
    int distance = edit_distance(word, candidate);
    // A word cut short counts as one slip: "fp8" is nearer to fp8_e4m3 than to fp16.
    if (word.size() > 1 && candidate.starts_with(word)) distance = std::min(distance, 1);
    const int limit =
        std::max<int>(2, static_cast<int>(std::max(word.size(), candidate.size())) / 3);
    if (distance > limit || (best && distance >= best_distance)) continue;
    // Two short words that share nothing are not near.
    if (distance >= static_cast<int>(std::max(word.size(), candidate.size()))) continue;
    best = candidate;
    best_distance = distance;
  }
  return best;
}

}  // namespace afdep::spec
