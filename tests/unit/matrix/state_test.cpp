#include "generator/matrix/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

CellResult passed() {
  CellResult result;
  result.outcome = Outcome::kPassed;
  result.seconds = 1.25;
  result.cpu_seconds = 0.75;
  result.diagnostics = {{ErrorCode::kTokens, {"f.yaml", 3, 4}, "what\nhappened", "do this"}};
  result.trace = "line\n";
  result.verified = {{"seeds", "3"}, {"rows", "12"}};
  result.ledger = {{"bucket 4", "2 hops"}};
  result.figures = {{"window", "1 KB"}};
  return result;
}

TEST(State, GivesBackWhatWasPut) {
  const TemporaryFolder folder;
  {
    Result<State> state = State::open(folder.path() / "new" / "folder", "tool", false);
    ASSERT_TRUE(state.ok()) << to_string(state.diagnostics());
    EXPECT_EQ(state->find("a"), nullptr);
    ASSERT_TRUE(state->put("a", passed()).ok());
  }
  const Result<State> state = State::open(folder.path() / "new" / "folder", "tool", false);
  ASSERT_TRUE(state.ok());
  const CellResult* const kept = state->find("a");
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->outcome, Outcome::kPassed);
  EXPECT_EQ(kept->seconds, 1.25);
  EXPECT_EQ(kept->cpu_seconds, 0.75);
  EXPECT_EQ(kept->diagnostics, passed().diagnostics);
  EXPECT_EQ(kept->trace, "line\n");
  EXPECT_EQ(kept->verified, passed().verified);
  EXPECT_EQ(kept->ledger, passed().ledger);
  EXPECT_EQ(kept->figures, passed().figures);
}

TEST(State, ForgetsAnotherToolsResultsAndOnDemandItsOwn) {
  const TemporaryFolder folder;
  {
    Result<State> state = State::open(folder.path(), "tool", false);
    ASSERT_TRUE(state.ok() && state->put("a", passed()).ok());
  }
  EXPECT_EQ(State::open(folder.path(), "other tool", false)->find("a"), nullptr);
  EXPECT_EQ(State::open(folder.path(), "tool", true)->find("a"), nullptr);
  EXPECT_NE(State::open(folder.path(), "tool", false)->find("a"), nullptr);
}

TEST(State, IsHeldByOneAtATime) {
  const TemporaryFolder folder;
  const Result<State> first = State::open(folder.path(), "tool", false);
  ASSERT_TRUE(first.ok());
  const Result<State> second = State::open(folder.path(), "tool", false);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(to_string(second.diagnostics()),
            folder.path().string() +
                ": error[E803]: another run of this matrix goes on\n  note: wait for it, or name "
                "another folder with --resume DIR\n");
}

TEST(State, RefusesAFileThatIsNotItsOwnUnlessFresh) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "afdep-matrix.json") << "[1, 2";
  const Result<State> state = State::open(folder.path(), "tool", false);
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(to_string(state.diagnostics()),
            (folder.path() / "afdep-matrix.json").string() +
                ": error[E803]: is not the state of a matrix\n  note: remove it, or start over "
                "with --fresh\n");
  EXPECT_TRUE(State::open(folder.path(), "tool", true).ok());
}

TEST(State, RefusesAFolderThatIsAFile) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "file") << "x";
  const Result<State> state = State::open(folder.path() / "file", "tool", false);
  ASSERT_FALSE(state.ok());
  EXPECT_EQ(state.diagnostics().front().code, ErrorCode::kDirectory);
  EXPECT_THAT(state.diagnostics().front().message,
              HasSubstr("cannot make the folder for the matrix's state"));
}

TEST(State, TheToolIsItsVersionAndItsBytes) {
  EXPECT_THAT(tool_identity(), ::testing::MatchesRegex("0\\.1\\.0-[0-9a-f]+"));
  EXPECT_EQ(tool_identity(), tool_identity());
}

}  // namespace
}  // namespace afdep::matrix
