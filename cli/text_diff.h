// Line differences of two texts, as `diff -u` prints them.
#pragma once

#include <string>
#include <string_view>

namespace afdep::cli {

enum class Spaces {
  kExact,
  kIgnoreRuns,  // runs of spaces inside a line are as good as one: columns of comments that move
                // are no difference
};

// Empty if the texts are equal. Hunks with three lines of context below "--- old_name" and
// "+++ new_name"; a shortest edit script (Myers, "An O(ND) Difference Algorithm", 1986).
std::string unified_diff(std::string_view old_text, std::string_view new_text,
                         std::string_view old_name, std::string_view new_name,
                         Spaces spaces = Spaces::kExact);

}  // namespace afdep::cli
