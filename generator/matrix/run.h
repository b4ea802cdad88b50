// A whole matrix: every cell in a process of its own, results kept as they come.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "generator/matrix/matrix.h"
#include "generator/matrix/outcome.h"
#include "generator/matrix/pool.h"
#include "generator/matrix/run_cell.h"
#include "generator/matrix/state.h"
#include "runtime/support/result.h"

namespace afdep::matrix {

struct RunCell {
  Cell cell;
  std::string label;
  std::string digest;     // of its spec; empty if that is refused
  std::string spec_text;  // canonical; empty if it is refused
  CellResult result;
};

// Of the cells that were executed, now or in an earlier run.
struct CellTimes {
  double median_seconds = 0;
  double median_cpu_seconds = 0;  // does not grow with what else the machine does
  double most_seconds = 0;
  int slowest = 0;  // number of a cell
};

struct Report {
  const Matrix* matrix = nullptr;
  std::string tool;
  std::vector<RunCell> cells;  // in the order of expansion
  double seconds = 0;
  bool interrupted = false;

  [[nodiscard]] int count(Outcome outcome) const;
  // Nothing if no cell was executed.
  [[nodiscard]] std::optional<CellTimes> times() const;
  // Every cell passed, or was refused as expected.
  [[nodiscard]] bool ok() const;
};

struct RunOptions {
  CellOptions cell = {};
  PoolOptions pool = {};
  int only = 0;  // the number of the one cell to run; 0: all
  // Told after each cell, `done` of `total`; first, at once, those that an earlier run passed.
  std::function<void(const RunCell&, int done, int total)> on_cell = nullptr;
};

// Runs every cell but those that `state` has passed under the same digest, tool and options. The
// matrix must outlive the report. Fails with E009 if there is no cell `only`, with E803 if the
// state cannot be written. Forks: see run_pool().
Result<Report> run(const Matrix& matrix, const RunOptions& options, State& state);

}  // namespace afdep::matrix
