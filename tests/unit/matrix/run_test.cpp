#include "generator/matrix/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr CellOptions kEmitOnly{.seeds = 0, .compile = false, .verify = false};
constexpr CellOptions kVerifyOnly{.seeds = 1, .compile = false, .verify = true};

Report must_run(const Matrix& matrix, const RunOptions& options, State& state) {
  Result<Report> report = run(matrix, options, state);
  if (!report.ok()) {
    ADD_FAILURE() << to_string(report.diagnostics());
    return {};
  }
  return std::move(*report);
}

State open(const TemporaryFolder& folder, bool fresh = false) {
  Result<State> state = State::open(folder.path(), "tool", fresh);
  EXPECT_TRUE(state.ok());
  return std::move(*state);
}

std::vector<Outcome> outcomes(const Report& report) {
  std::vector<Outcome> all;
  for (const RunCell& run : report.cells) all.push_back(run.result.outcome);
  return all;
}

TEST(RunMatrix, JudgesEveryCell) {
  const TemporaryFolder folder;
  State state = open(folder);
  const Matrix matrix = matrix_of(kSample);
  const Report report = must_run(matrix, {.cell = kVerifyOnly}, state);
  using enum Outcome;
  EXPECT_THAT(outcomes(report),
              ElementsAre(kPassed, kPassed, kExpected, kRefused, kRefused, kRefused));
  EXPECT_FALSE(report.ok());
  EXPECT_FALSE(report.interrupted);
  EXPECT_EQ(report.cells[3].result.diagnostics.front().code, ErrorCode::kTopK);
  EXPECT_EQ(report.cells[0].result.verified[0],
            (std::pair<std::string, std::string>("run as", "1A1F, H 64, E 8, K 1")));
  EXPECT_FALSE(report.cells[0].result.ledger.empty());
  EXPECT_GT(report.cells[0].result.seconds, 0);
}

TEST(RunMatrix, ACellThatShouldBeRefusedAndIsNotFails) {
  const TemporaryFolder folder;
  State state = open(folder);
  const Matrix matrix = matrix_of(R"(base_file: specs/tiny-1a1f.yaml
axes:
  model.top_k: [1, 5]
expect:
  - {where: {model.top_k: 1}, refused: E202}
  - {where: {model.top_k: 5}, refused: E207}
)");
  const Report report = must_run(matrix, {.cell = kVerifyOnly}, state);
  EXPECT_THAT(outcomes(report), ElementsAre(Outcome::kFailed, Outcome::kRefused));
  EXPECT_EQ(message_of(report.cells[0].result),
            "E202: expected to be refused with E202, but is accepted");
  // Refused, but with E202.
  EXPECT_THAT(report.cells[1].result.trace, HasSubstr("the matrix expects E207 and nothing else"));
}

TEST(RunMatrix, GoesOnAfterAnInterruption) {
  const TemporaryFolder folder;
  const Matrix matrix = matrix_of(R"(base_file: specs/tiny-1a1f.yaml
axes:
  model.top_k: [1, 2, 3, 4]
  topology.ratio: ["1A1F", "2A1F"]
)");
  std::set<int> ran;
  {
    State state = open(folder);
    RunOptions options{.cell = kEmitOnly, .pool = {.jobs = 1, .limit_seconds = 60}};
    options.on_cell = [&ran](const RunCell& run, int done, int total) {
      EXPECT_EQ(total, 8);
      ran.insert(run.cell.number);
      if (done == 3) kill(getpid(), SIGINT);
    };
    const Report report = must_run(matrix, options, state);
    EXPECT_TRUE(report.interrupted);
    EXPECT_FALSE(report.ok());
    EXPECT_EQ(report.count(Outcome::kPassed), 3);
    EXPECT_EQ(report.count(Outcome::kNotRun), 5);
  }
  EXPECT_THAT(ran, ElementsAre(1, 2, 3));
  {
    State state = open(folder);
    const Report report = must_run(matrix, {.cell = kEmitOnly}, state);
    EXPECT_TRUE(report.ok());
    for (const RunCell& run : report.cells) {
      EXPECT_EQ(run.result.resumed, run.cell.number <= 3) << run.cell.number;
    }
  }
  {
    // Other options verify more, so nothing is kept.
    State state = open(folder);
    const Report report = must_run(matrix, {.cell = kVerifyOnly, .only = 1}, state);
    ASSERT_EQ(report.cells.size(), 1U);
    EXPECT_FALSE(report.cells[0].result.resumed);
  }
  {
    State state = open(folder, true);
    const Report report = must_run(matrix, {.cell = kEmitOnly}, state);
    for (const RunCell& run : report.cells) EXPECT_FALSE(run.result.resumed);
  }
}

TEST(RunMatrix, AResultCountsOnlyForTheSameSpec) {
  const TemporaryFolder folder;
  const std::string axes = "axes:\n  model.top_k: [1, 2]\n";
  const std::string base = R"(base:
  schema_version: 1
  name: NAME
  model: {hidden_size: 64, num_experts: EXPERTS}
  topology: {ratio: "1A1F"}
  capacity: {tokens_per_rank: 4}
)";
  const auto text = [&](const std::string& name, const std::string& experts) {
    std::string filled = base + axes;
    filled.replace(filled.find("NAME"), 4, name);
    filled.replace(filled.find("EXPERTS"), 7, experts);
    return filled;
  };
  const auto kept = [&](const std::string& matrix_text) {
    State state = open(folder);
    const Matrix matrix = matrix_of(matrix_text);
    const Report report = must_run(matrix, {.cell = kEmitOnly}, state);
    return report.cells[0].result.resumed;
  };
  EXPECT_FALSE(kept(text("one", "4")));
  EXPECT_TRUE(kept(text("one", "4")));
  EXPECT_TRUE(kept(text("two", "4")));  // a name changes nothing that is verified
  EXPECT_FALSE(kept(text("one", "8")));
}

TEST(RunMatrix, ATimeoutNamesTheStage) {
  const TemporaryFolder folder;
  State state = open(folder);
  // Verification of this takes longer than the limit, expansion and planning do not.
  const Matrix matrix = matrix_of(
      "base_file: specs/qwen3-30b-a3b-4a4f.yaml\naxes:\n"
      "  model.top_k: [8]\n");
  const Report report = must_run(
      matrix,
      {.cell = {.seeds = 1000, .compile = false}, .pool = {.jobs = 1, .limit_seconds = 1.5}},
      state);
  EXPECT_THAT(outcomes(report), ElementsAre(Outcome::kTimeout));
  EXPECT_EQ(message_of(report.cells[0].result), "E704: not done after 1.5 s (stage verify)");
  // What the note names for repeating it is there.
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "cell-001.yaml"));
}

TEST(RunMatrix, RefusesACellThatDoesNotExist) {
  const TemporaryFolder folder;
  State state = open(folder);
  const Matrix matrix = matrix_of(kSample);
  const Result<Report> report = run(matrix, {.only = 7}, state);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(to_string(report.diagnostics()),
            "error[E009]: --cell 7: sample.yaml has 6 cells\n  note: cells count from 1, the last "
            "axis fastest\n");
}

}  // namespace
}  // namespace afdep::matrix
