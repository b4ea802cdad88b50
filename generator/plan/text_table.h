// Plain aligned columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace afdep::plan {

inline constexpr std::size_t kTextColumns = 120;  // no printed line is longer

// Columns that start with '>' in the heading are aligned right. The last column is wrapped at
// kTextColumns; its further lines are indented to its start. An empty heading line is left out.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> headings) : headings_(std::move(headings)) {}

  // As many cells as headings. A note has lines of its own below the row, indented by two more
  // spaces.
  void add(std::vector<std::string> cells, std::string note = {}) {
    rows_.push_back({std::move(cells), std::move(note)});
  }

  // Each line indented by `indent` spaces, ending in a newline, without trailing spaces.
  [[nodiscard]] std::string print(std::size_t indent) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::string note;
  };
  std::vector<std::string> headings_;
  std::vector<Row> rows_;
};

// Words of `text` in lines of at most `width` characters; a longer word has a line of its own.
std::vector<std::string> wrap(std::string_view text, std::size_t width);

// "512 B", "4.0 KiB", "2.3 MiB".
std::string human_bytes(double bytes);

}  // namespace afdep::plan
