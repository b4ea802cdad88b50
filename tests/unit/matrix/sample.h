// A small matrix for tests: one that runs in a blink, and one for reports.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "generator/matrix/matrix.h"
#include "generator/matrix/run.h"

namespace afdep::matrix {

// 2 x 3 cells. 1A3F does not divide 8 experts, which the matrix expects; top_k 9 is over them.
inline constexpr const char* kSample = R"(base:
  schema_version: 1
  name: sample
  model: {hidden_size: 64, num_experts: 8, top_k: 2}
  topology: {ratio: "1A1F"}
  capacity: {tokens_per_rank: 4}
axes:
  model.top_k: [1, 9]
  topology.ratio: ["1A1F", "2A2F", "1A3F"]
expect:
  - {where: {model.top_k: 1, topology.ratio: "1A3F"}, refused: E207}
)";

inline Matrix matrix_of(const std::string& text) {
  Result<Matrix> matrix = read(text, "sample.yaml");
  if (!matrix.ok()) {
    ADD_FAILURE() << to_string(matrix.diagnostics());
    return {};
  }
  return std::move(*matrix);
}

// A report on `matrix` with one of each outcome, as far as there are cells.
inline Report report_on(const Matrix& matrix) {
  Report report;
  report.matrix = &matrix;
  report.tool = "0.1.0-0123456789abcdef";
  report.seconds = 12.5;
  for (const Cell& cell : expand(matrix)) {
    report.cells.push_back({cell, label(matrix, cell), {}, {}, {}});
    RunCell& run = report.cells.back();
    run.result.outcome = kOutcomes[report.cells.size() - 1];
    run.result.seconds = static_cast<double>(cell.number) / 4;
    run.result.cpu_seconds = static_cast<double>(7 - cell.number) / 2;
  }
  return report;
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = std::filesystem::temp_directory_path() / "afdep matrix XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace afdep::matrix
