// afdep-gen matrix: every spec of a matrix file, generated, compiled and verified.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "cli/matrix_progress.h"
#include "cli/output_file.h"
#include "generator/matrix/matrix.h"
#include "generator/matrix/reports.h"
#include "generator/matrix/run.h"
#include "generator/matrix/state.h"

namespace afdep::cli {
namespace {

namespace fs = std::filesystem;

// Before minutes of work, not after them.
Result<void> check_report_path(const std::string& option, const std::string& path) {
  if (path.empty()) return {};
  const fs::path parent = fs::path(path).parent_path();
  const fs::path folder = parent.empty() ? fs::path(".") : parent;
  std::string problem;
  if (!fs::is_directory(folder)) {
    problem = "its folder does not exist";
  } else if (access(folder.c_str(), W_OK) != 0) {
    problem = "its folder cannot be written";
  } else if (fs::is_directory(path)) {
    problem = "it is a folder";
  } else {
    return {};
  }
  return Failure(ErrorCode::kDirectory, fmt::format("{} {}: {}", option, path, problem),
                 "name a file in a folder that exists and is writable");
}

matrix::RunOptions options_of(const MatrixArguments& arguments) {
  matrix::RunOptions options;
  options.cell.seeds = arguments.seeds;
  options.cell.compile = !arguments.emit_only && !arguments.no_compile;
  options.cell.verify = !arguments.emit_only;
  options.pool.jobs = arguments.jobs;
  options.pool.limit_seconds = arguments.timeout_s;
  options.only = arguments.cell;
  return options;
}

Result<matrix::State> open_state(const MatrixArguments& arguments) {
  const std::string tool = matrix::tool_identity();
  if (!arguments.state_folder.empty()) {
    return matrix::State::open(arguments.state_folder, tool, arguments.fresh);
  }
  const Result<fs::path> folder = matrix::default_state_folder(arguments.file);
  if (!folder.ok()) return folder.failure();
  return matrix::State::open(*folder, tool, arguments.fresh);
}

// The errors of cells that are bad, each with the command that shows it again.
void print_failures(const matrix::Report& report) {
  for (const matrix::RunCell& run : report.cells) {
    const matrix::CellResult& result = run.result;
    if (is_good(result.outcome) || result.outcome == matrix::Outcome::kNotRun) continue;
    print_error(fmt::format("cell {} ({}): {}\n{}", run.cell.number, run.label,
                            to_string(result.outcome), to_string(result.diagnostics)));
    if (!result.trace.empty()) print_error(fmt::format("  it said: {}\n", result.trace));
  }
}

Result<void> write_reports(const MatrixArguments& arguments, const matrix::Report& report) {
  if (!arguments.junit.empty()) {
    AFDEP_RETURN_IF_FAILED(write_file(arguments.junit, matrix::to_junit(report)));
  }
  if (!arguments.html.empty()) {
    AFDEP_RETURN_IF_FAILED(write_file(arguments.html, matrix::to_html(report)));
  }
  return {};
}

// `matrix` must outlive the report.
Result<matrix::Report> run_all(const MatrixArguments& arguments, const matrix::Matrix& matrix) {
  AFDEP_RETURN_IF_FAILED(check_report_path("--junit", arguments.junit));
  AFDEP_RETURN_IF_FAILED(check_report_path("--html", arguments.html));
  Result<matrix::State> state = open_state(arguments);
  if (!state.ok()) return state.failure();
  MatrixProgress progress;
  matrix::RunOptions options = options_of(arguments);
  options.on_cell = [&progress](const matrix::RunCell& run, int done, int total) {
    progress.show(run, done, total);
  };
  return matrix::run(matrix, options, *state);
}

}  // namespace

int run_matrix(const MatrixArguments& arguments) {
  const Result<matrix::Matrix> matrix = matrix::load(arguments.file);
  if (!matrix.ok()) return report_failure(matrix.diagnostics(), arguments.json);
  const Result<matrix::Report> report = run_all(arguments, *matrix);
  if (!report.ok()) return report_failure(report.diagnostics(), arguments.json);

  print_failures(*report);
  print_out(arguments.json ? matrix::to_json(*report) : matrix::to_table(*report));
  if (report->interrupted) {
    print_error("interrupted; the same command goes on with the cells that have not passed\n");
  }
  const Result<void> written = write_reports(arguments, *report);
  // stdout has the report already, so the failure is no JSON.
  if (!written.ok()) return report_failure(written.diagnostics(), false);
  return report->ok() ? kExitOk : kExitRefused;
}

}  // namespace afdep::cli
