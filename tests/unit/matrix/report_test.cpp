#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "generator/matrix/reports.h"
#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

Report sample_report(const Matrix& matrix) {
  Report report = report_on(matrix);
  report.cells[0].result.resumed = true;
  report.cells[3].result.diagnostics = {
      {ErrorCode::kVerification, {}, "seed 2: wrong", "repeat: this"},
      {ErrorCode::kVerification, {}, "and again", ""}};
  return report;
}

TEST(Report, TheTableHasALineACell) {
  const Matrix matrix = matrix_of(kSample);
  EXPECT_EQ(
      to_table(sample_report(matrix)),
      "cell  top_k  ratio   outcome      s  message\n"
      "   1  1      \"1A1F\"  passed    kept\n"
      "   2  1      \"2A2F\"  expected   0.5\n"
      "   3  1      \"1A3F\"  refused    0.8\n"
      "   4  9      \"1A1F\"  failed     1.0  E704: seed 2: wrong (and 1 more)\n"
      "   5  9      \"2A2F\"  error      1.2\n"
      "   6  9      \"1A3F\"  crashed    1.5\n"
      "\n"
      "6 cells: 1 passed, 1 expected, 1 refused, 1 failed, 1 error, 1 crashed; 12.5 s, a cell "
      "1.0 s at the median (2.0 s of CPU time) and 1.5 s at most (cell 6); 1 kept from an earlier "
      "run\n");
}

TEST(Report, JsonHasEveryCell) {
  const Matrix matrix = matrix_of(kSample);
  const nlohmann::json json = nlohmann::json::parse(to_json(sample_report(matrix)));
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["matrix"], "sample.yaml");
  EXPECT_EQ(json["counts"]["passed"], 1);
  EXPECT_EQ(json["counts"]["not run"], 0);
  ASSERT_EQ(json["cells"].size(), 6U);
  EXPECT_EQ(json["cells"][0]["kept"], true);
  EXPECT_EQ(json["cells"][3]["errors"][0]["code"], "E704");
  EXPECT_EQ(json["cells"][3]["values"]["model.top_k"], "9");
  EXPECT_EQ(json["cell_times"]["median_seconds"], 1.0);
  EXPECT_EQ(json["cell_times"]["median_cpu_seconds"], 2.0);
  EXPECT_EQ(json["cell_times"]["most_seconds"], 1.5);
  EXPECT_EQ(json["cell_times"]["slowest"], 6);
  EXPECT_EQ(json["axes"][1]["names"][0], "ratio");
}

TEST(Report, HasNoTimesIfNoCellWasExecuted) {
  const Matrix matrix = matrix_of(kSample);
  Report report = report_on(matrix);
  for (RunCell& run : report.cells) run.result.seconds = 0;
  EXPECT_FALSE(report.times().has_value());
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["cell_times"], nullptr);
  EXPECT_THAT(to_table(report), ::testing::EndsWith("1 crashed; 12.5 s\n"));
}

TEST(Report, IsGoodIfEveryCellPassedOrWasRefusedAsExpected) {
  const Matrix matrix = matrix_of(kSample);
  Report report = report_on(matrix);
  for (RunCell& run : report.cells) run.result.outcome = Outcome::kPassed;
  report.cells[1].result.outcome = Outcome::kExpected;
  EXPECT_TRUE(report.ok());
  for (const Outcome bad : kOutcomes) {
    if (is_good(bad)) continue;
    report.cells[0].result.outcome = bad;
    EXPECT_FALSE(report.ok()) << to_string(bad);
  }
}

}  // namespace
}  // namespace afdep::matrix
