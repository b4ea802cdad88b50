#include "generator/matrix/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "generator/spec/digest.h"
#include "generator/spec/printer.h"
#include "generator/spec/reader.h"

namespace afdep::matrix {
namespace {

namespace fs = std::filesystem;

// What a result depends on beside the tool.
std::string key_of(const std::string& digest, const CellOptions& options) {
  return fmt::format("{} seeds={} compile={} verify={}", digest, options.seeds, options.compile,
                     options.verify);
}

// Judges a cell against what the matrix expects of it.
CellResult judged(CellResult result, const Cell& cell) {
  if (!cell.must_refuse) return result;
  const std::string code = to_string(*cell.must_refuse);
  if (result.outcome == Outcome::kRefused) {
    const bool only_this = std::ranges::all_of(
        result.diagnostics, [&](const Diagnostic& each) { return each.code == *cell.must_refuse; });
    if (only_this) {
      result.outcome = Outcome::kExpected;
    } else {
      result.trace = fmt::format("the matrix expects {} and nothing else", code);
    }
  } else if (result.outcome == Outcome::kPassed) {
    result.outcome = Outcome::kFailed;
    result.diagnostics = {{*cell.must_refuse,
                           {},
                           fmt::format("expected to be refused with {}, but is accepted", code),
                           "correct expect in the matrix file, or the rule"}};
  }
  return result;
}

Diagnostics one(ErrorCode code, std::string message, std::string note) {
  return {{code, {}, std::move(message), std::move(note)}};
}

class Runner {
 public:
  Runner(const Matrix& matrix, const RunOptions& options, State& state)
      : options_(options), state_(state) {
    report_.matrix = &matrix;
    report_.tool = tool_identity();
  }

  Result<Report> run() {
    const auto start = std::chrono::steady_clock::now();
    AFDEP_RETURN_IF_FAILED(add_cells());
    total_ = static_cast<int>(report_.cells.size());
    for (std::size_t i = 0; i < report_.cells.size(); ++i) settle_without_running(i);
    report_.interrupted = !run_pool(
        static_cast<int>(pending_.size()), options_.pool,
        [this](int job, const TellStage& tell) { return in_child(at(job), tell); },
        [this](int job, JobEnd end) { on_end(at(job), std::move(end)); });
    if (!unwritten_.ok()) return unwritten_.failure();
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  RunCell& at(int job) { return report_.cells[pending_[static_cast<std::size_t>(job)]]; }

  Result<void> add_cells() {
    const Matrix& matrix = *report_.matrix;
    const std::vector<Cell> cells = expand(matrix);
    if (options_.only > static_cast<int>(cells.size())) {
      return Failure(
          ErrorCode::kMatrixFile,
          fmt::format("--cell {}: {} has {} cells", options_.only, matrix.file, cells.size()),
          "cells count from 1, the last axis fastest");
    }
    for (const Cell& cell : cells) {
      if (options_.only != 0 && cell.number != options_.only) continue;
      report_.cells.push_back({cell, label(matrix, cell), {}, {}, {}});
    }
    return {};
  }

  // A cell that is refused, or passed before; else it is pending.
  void settle_without_running(std::size_t index) {
    RunCell& run = report_.cells[index];
    const Result<spec::Spec> spec = cell_spec(*report_.matrix, run.cell);
    if (!spec) {
      run.result.outcome = Outcome::kRefused;
      run.result.diagnostics = spec.diagnostics();
      run.result = judged(std::move(run.result), run.cell);
      settled(run);
      return;
    }
    run.digest = spec::digest(*spec);
    run.spec_text = spec::print(*spec);
    const CellResult* const kept = state_.find(key_of(run.digest, options_.cell));
    if (kept != nullptr && kept->outcome == Outcome::kPassed && !run.cell.must_refuse) {
      run.result = *kept;
      run.result.resumed = true;
      settled(run);
      return;
    }
    pending_.push_back(index);
  }

  void settled(const RunCell& run) {
    ++done_;
    if (options_.on_cell) options_.on_cell(run, done_, total_);
  }

  [[nodiscard]] fs::path spec_path(const RunCell& run) const {
    return state_.folder() / fmt::format("cell-{:03}.yaml", run.cell.number);
  }

  std::string in_child(const RunCell& run, const TellStage& tell) const {
    tell("read");
    const std::string file = spec_path(run).string();
    const Result<spec::Spec> spec = spec::parse(run.spec_text, file);
    AFDEP_CHECK(spec.ok(), "a printed spec is refused: " + to_string(spec.diagnostics()));
    CellOptions options = options_.cell;
    // Cells share out the schedules.
    options.first_seed = static_cast<std::uint64_t>(run.cell.number);
    // Nothing is gained from running what must not be accepted.
    if (run.cell.must_refuse) options.compile = options.verify = false;
    return to_json(run_cell(*spec, run.spec_text, file, options, tell));
  }

  void on_end(RunCell& run, JobEnd end) {
    run.result = judged(result_of(end, run), run.cell);
    run.result.seconds = end.seconds;
    run.result.cpu_seconds = end.cpu_seconds;
    if (!is_good(run.result.outcome)) keep_spec(run);
    if (const Result<void> kept = state_.put(key_of(run.digest, options_.cell), run.result);
        !kept.ok() && unwritten_.ok()) {
      unwritten_ = kept;
    }
    settled(run);
  }

  CellResult result_of(const JobEnd& end, const RunCell& run) const {
    CellResult result;
    const std::string again =
        fmt::format("repeat: afdep-gen matrix {} --cell {}", report_.matrix->file, run.cell.number);
    switch (end.how) {
      case Ended::kReturned:
        if (std::optional<CellResult> returned = result_from_json(end.result)) return *returned;
        result.outcome = Outcome::kCrashed;
        result.diagnostics =
            one(ErrorCode::kVerification,
                fmt::format("the result cannot be read (stage {})", end.stage), again);
        break;
      case Ended::kTimeout:
        result.outcome = Outcome::kTimeout;
        result.diagnostics = one(
            ErrorCode::kVerification,
            fmt::format("not done after {:g} s (stage {})", options_.pool.limit_seconds, end.stage),
            again + ", or give it more time with --timeout");
        break;
      case Ended::kSignal:
        result.outcome = Outcome::kCrashed;
        result.diagnostics = one(ErrorCode::kVerification,
                                 fmt::format("killed by signal {}, {} (stage {})", end.number,
                                             strsignal(end.number), end.stage),
                                 again);
        break;
      case Ended::kExit:
        result.outcome = Outcome::kCrashed;
        result.diagnostics =
            one(ErrorCode::kVerification,
                fmt::format("{}, exit code {} (stage {})",
                            end.number == 70 ? "internal error" : "ended by itself", end.number,
                            end.stage),
                again);
        break;
    }
    result.trace = end.output;
    return result;
  }

  // So that the command in the note of a failure finds the spec.
  void keep_spec(const RunCell& run) const {
    std::ofstream out(spec_path(run), std::ios::binary);
    out << "# Cell " << run.cell.number << " of " << report_.matrix->file << ": " << run.label
        << "\n"
        << run.spec_text;
  }

  const RunOptions& options_;
  State& state_;
  Report report_;
  std::vector<std::size_t> pending_;  // indices of report_.cells
  int done_ = 0;
  int total_ = 0;
  Result<void> unwritten_;
};

}  // namespace

int Report::count(Outcome outcome) const {
  return static_cast<int>(std::ranges::count_if(
      cells, [outcome](const RunCell& run) { return run.result.outcome == outcome; }));
}

std::optional<CellTimes> Report::times() const {
  std::vector<const RunCell*> executed;
  for (const RunCell& run : cells) {
    if (run.result.seconds > 0) executed.push_back(&run);
  }
  if (executed.empty()) return std::nullopt;
  const std::size_t middle = executed.size() / 2;
  CellTimes times;
  std::ranges::sort(executed, {}, [](const RunCell* run) { return run->result.cpu_seconds; });
  times.median_cpu_seconds = executed[middle]->result.cpu_seconds;
  std::ranges::sort(executed, {}, [](const RunCell* run) { return run->result.seconds; });
  times.median_seconds = executed[middle]->result.seconds;
  times.most_seconds = executed.back()->result.seconds;
  times.slowest = executed.back()->cell.number;
  return times;
}

bool Report::ok() const {
  return std::ranges::all_of(cells, [](const RunCell& run) { return is_good(run.result.outcome); });
}

Result<Report> run(const Matrix& matrix, const RunOptions& options, State& state) {
  return Runner(matrix, options, state).run();
}

}  // namespace afdep::matrix
