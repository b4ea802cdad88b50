#include "generator/plan/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

constexpr std::size_t kGap = 2;  // spaces between columns

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line;
  out += '\n';
}

}  // namespace

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back();
    }
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

std::string human_bytes(double bytes) {
  constexpr double kStep = 1024;
  if (bytes < kStep) return fmt::format("{:.0f} B", bytes);
  if (bytes < kStep * kStep) return fmt::format("{:.1f} KiB", bytes / kStep);
  if (bytes < kStep * kStep * kStep) return fmt::format("{:.1f} MiB", bytes / (kStep * kStep));
  return fmt::format("{:.2f} GiB", bytes / (kStep * kStep * kStep));
}

std::string TextTable::print(std::size_t indent) const {
  const std::size_t columns = headings_.size();
  std::vector<std::size_t> widths(columns);
  std::vector<bool> right(columns);
  std::vector<std::string> headings = headings_;
  bool has_heading = false;
  for (std::size_t c = 0; c < columns; ++c) {
    right[c] = headings[c].starts_with('>');
    if (right[c]) headings[c].erase(0, 1);
    has_heading = has_heading || !headings[c].empty();
    widths[c] = headings[c].size();
    for (const Row& row : rows_) {
      AFDEP_CHECK(row.cells.size() == columns, "a row of a table with another number of cells");
      widths[c] = std::max(widths[c], row.cells[c].size());
    }
  }

  std::string out;
  const auto print_row = [&](const std::vector<std::string>& cells) {
    std::string line(indent, ' ');
    for (std::size_t c = 0; c + 1 < columns; ++c) {
      line += right[c] ? fmt::format("{:>{}}", cells[c], widths[c])
                       : fmt::format("{:<{}}", cells[c], widths[c]);
      line += std::string(kGap, ' ');
    }
    const std::size_t start = line.size();
    const std::string& last = cells[columns - 1];
    if (right[columns - 1]) {
      append_line(out, line + fmt::format("{:>{}}", last, widths[columns - 1]));
      return;
    }
    const std::size_t width = start < kTextColumns ? kTextColumns - start : 1;
    for (const std::string& part : wrap(last, width)) {
      append_line(out, line + part);
      line.assign(start, ' ');
    }
  };
  if (has_heading) print_row(headings);
  for (const Row& row : rows_) {
    print_row(row.cells);
    if (row.note.empty()) continue;
    const std::string margin(indent + 2, ' ');
    for (const std::string& part : wrap(row.note, kTextColumns - margin.size())) {
      append_line(out, margin + part);
    }
  }
  return out;
}

}  // namespace afdep::plan
