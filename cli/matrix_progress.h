// What a person sees while a matrix runs.
#pragma once

#include <chrono>
#include <string>

#include "generator/matrix/run.h"

namespace afdep::cli {

// On stderr: a bar with the time that is left on a terminal, a line a cell elsewhere.
class MatrixProgress {
 public:
  MatrixProgress();
  ~MatrixProgress();
  MatrixProgress(const MatrixProgress&) = delete;
  MatrixProgress& operator=(const MatrixProgress&) = delete;

  void show(const matrix::RunCell& run, int done, int total);

 private:
  [[nodiscard]] std::string time_left(int done, int total) const;

  bool terminal_;
  bool drawn_ = false;
  int ran_ = 0;  // cells that took time here
  int bad_ = 0;
  std::chrono::steady_clock::time_point start_;
};

// "45 s", "3 min", "2 h 05 min".
std::string duration_text(double seconds);

}  // namespace afdep::cli
