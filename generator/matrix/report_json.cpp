// The report for programs.
#include <nlohmann/json.hpp>
#include <optional>

#include "generator/matrix/reports.h"

namespace afdep::matrix {
namespace {

using nlohmann::ordered_json;

ordered_json describe(const Diagnostic& diagnostic) {
  ordered_json error{{"code", to_string(diagnostic.code)},
                     {"message", diagnostic.message},
                     {"note", diagnostic.note}};
  if (!diagnostic.place.file.empty()) error["file"] = diagnostic.place.file;
  if (diagnostic.place.line > 0) {
    error["line"] = diagnostic.place.line;
    error["column"] = diagnostic.place.column;
  }
  return error;
}

ordered_json describe(const Facts& facts) {
  ordered_json lines = ordered_json::array();
  for (const auto& [name, value] : facts) lines.push_back({{"name", name}, {"value", value}});
  return lines;
}

ordered_json describe(const RunCell& run) {
  ordered_json values = ordered_json::object();
  for (const spec::Override& change : run.cell.overrides) values[change.path] = change.value;
  ordered_json errors = ordered_json::array();
  for (const Diagnostic& each : run.result.diagnostics) errors.push_back(describe(each));
  return {{"number", run.cell.number},
          {"label", run.label},
          {"choices", run.cell.choices},
          {"values", std::move(values)},
          {"outcome", to_string(run.result.outcome)},
          {"seconds", run.result.seconds},
          {"cpu_seconds", run.result.cpu_seconds},
          {"kept", run.result.resumed},
          {"expected", run.cell.must_refuse ? ordered_json(to_string(*run.cell.must_refuse))
                                            : ordered_json(nullptr)},
          {"digest", run.digest},
          {"errors", std::move(errors)},
          {"trace", run.result.trace},
          {"verified", describe(run.result.verified)},
          {"ledger", describe(run.result.ledger)},
          {"figures", describe(run.result.figures)},
          {"spec", run.spec_text}};
}

ordered_json describe_axes(const Matrix& matrix) {
  ordered_json axes = ordered_json::array();
  const std::vector<std::string> names = short_keys(matrix);
  std::size_t key = 0;
  for (const Axis& axis : matrix.axes) {
    ordered_json values = ordered_json::array();
    for (const AxisValue& value : axis.values) values.push_back(value.texts);
    ordered_json short_names = ordered_json::array();
    ordered_json base = ordered_json::array();
    for (std::size_t i = 0; i < axis.keys.size(); ++i, ++key) {
      short_names.push_back(names[key]);
      const std::optional<std::string>& given = matrix.base_values[key];
      base.push_back(given ? ordered_json(*given) : ordered_json(nullptr));
    }
    axes.push_back({{"keys", axis.keys},
                    {"names", std::move(short_names)},
                    {"values", std::move(values)},
                    {"base", std::move(base)}});
  }
  return axes;
}

}  // namespace

std::string to_json(const Report& report) {
  ordered_json counts = ordered_json::object();
  for (const Outcome outcome : kOutcomes) counts[to_string(outcome)] = report.count(outcome);
  ordered_json cells = ordered_json::array();
  for (const RunCell& run : report.cells) cells.push_back(describe(run));
  ordered_json times = nullptr;
  if (const std::optional<CellTimes> found = report.times()) {
    times = {{"median_seconds", found->median_seconds},
             {"median_cpu_seconds", found->median_cpu_seconds},
             {"most_seconds", found->most_seconds},
             {"slowest", found->slowest}};
  }
  const ordered_json all{{"ok", report.ok()},
                         {"matrix", report.matrix->file},
                         {"tool", report.tool},
                         {"seconds", report.seconds},
                         {"cell_times", std::move(times)},
                         {"interrupted", report.interrupted},
                         {"counts", std::move(counts)},
                         {"axes", describe_axes(*report.matrix)},
                         {"cells", std::move(cells)}};
  return all.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace afdep::matrix
