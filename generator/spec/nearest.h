// "Did you mean": the candidate that a misspelt word was probably meant to be.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace afdep::spec {

// Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours.
int edit_distance(std::string_view a, std::string_view b);

// The closest candidate, the first of equals; one that starts with the word is close. None if over
// a third of the longer word (and over 2) would have to change.
std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates);

}  // namespace afdep::spec
