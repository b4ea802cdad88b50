// The report as text for a terminal or a log.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "generator/matrix/reports.h"

namespace afdep::matrix {
namespace {

constexpr std::size_t kLongestValue = 28;
constexpr std::size_t kLongestMessage = 100;

std::string cut(std::string text, std::size_t limit) {
  std::ranges::replace(text, '\n', ' ');
  if (text.size() <= limit) return text;
  std::size_t end = limit - 3;
  // Never cut inside a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string seconds_text(const RunCell& run) {
  if (run.result.resumed) return "kept";
  return run.result.seconds == 0 ? "-" : fmt::format("{:.1f}", run.result.seconds);
}

}  // namespace

std::string to_table(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> head{"cell"};
  for (const std::string& key : short_keys(*report.matrix)) head.push_back(key);
  head.insert(head.end(), {"outcome", "s", "message"});
  rows.push_back(head);
  for (const RunCell& run : report.cells) {
    std::vector<std::string> row{fmt::format("{}", run.cell.number)};
    for (const spec::Override& change : run.cell.overrides) {
      row.push_back(cut(change.value, kLongestValue));
    }
    row.emplace_back(to_string(run.result.outcome));
    row.push_back(seconds_text(run));
    row.push_back(cut(message_of(run.result), kLongestMessage));
    rows.push_back(std::move(row));
  }
  std::vector<std::size_t> widths(head.size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool number = i == 0 || i + 2 == row.size();
      line += number ? fmt::format("{:>{}}  ", row[i], widths[i])
                     : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + "\n" + summary(report);
}

std::string summary(const Report& report) {
  std::string text =
      fmt::format("{} cell{}:", report.cells.size(), report.cells.size() == 1 ? "" : "s");
  bool first = true;
  for (const Outcome outcome : kOutcomes) {
    const int count = report.count(outcome);
    if (count == 0) continue;
    text += fmt::format("{} {} {}", first ? "" : ",", count, to_string(outcome));
    first = false;
  }
  const auto kept =
      std::ranges::count_if(report.cells, [](const RunCell& run) { return run.result.resumed; });
  text += fmt::format("; {:.1f} s", report.seconds);
  if (const std::optional<CellTimes> times = report.times()) {
    text += fmt::format(
        ", a cell {:.1f} s at the median ({:.1f} s of CPU time) and {:.1f} s at most (cell {})",
        times->median_seconds, times->median_cpu_seconds, times->most_seconds, times->slowest);
  }
  if (kept > 0) text += fmt::format("; {} kept from an earlier run", kept);
  return text + "\n";
}

}  // namespace afdep::matrix
