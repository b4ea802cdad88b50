// afdep-gen matrix as a user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/unit/cli/process.h"

namespace afdep {
namespace {

namespace fs = std::filesystem;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kGen = AFDEP_GEN;

constexpr const char* kMatrix = R"(base:
  schema_version: 1
  name: little
  model: {hidden_size: 64, num_experts: 4, top_k: 2}
  topology: {ratio: "1A1F"}
  capacity: {tokens_per_rank: 4}
axes:
  model.top_k: [1, 2]
  topology.ratio: ["1A1F", "1A3F"]
expect:
  - {where: {topology.ratio: "1A3F"}, refused: E207}
)";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class MatrixCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "afdep matrix XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
    write("m.yaml", kMatrix);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] Finished gen(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {kGen, "matrix"});
    testing::ProcessOptions options;
    options.folder = folder_;
    options.variables["XDG_CACHE_HOME"] = folder_ / "cache";
    return testing::run(arguments, options);
  }

  fs::path folder_;
};

TEST_F(MatrixCommand, PassesAndWritesItsReports) {
  const Finished finished =
      gen({"m.yaml", "--no-compile", "--seeds", "1", "--junit", "j.xml", "--html", "r.html"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("cell  top_k  ratio   outcome"));
  EXPECT_THAT(finished.out, HasSubstr("4 cells: 2 passed, 2 expected; "));
  EXPECT_THAT(read(folder_ / "j.xml"), HasSubstr("tests=\"4\" failures=\"0\" errors=\"0\""));
  EXPECT_THAT(read(folder_ / "r.html"), StartsWith("<!DOCTYPE html>"));

  const Finished again = gen({"m.yaml", "--no-compile", "--seeds", "1"});
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.out, HasSubstr("; 2 kept from an earlier run"));
}

TEST_F(MatrixCommand, OneBadCellIsExitCodeOne) {
  write("bad.yaml", std::string(kMatrix).replace(std::string(kMatrix).find("[1, 2]"), 6, "[1, 5]"));
  const Finished finished = gen({"bad.yaml", "--emit-only", "--json"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, HasSubstr("cell 3 (top_k=5 ratio=1A1F): refused\nbad.yaml:8:20: "
                                      "error[E202]: "));
  const nlohmann::json report = nlohmann::json::parse(finished.out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["counts"]["passed"], 1);
}

TEST_F(MatrixCommand, AnUnreadableMatrixIsE009) {
  const Finished finished = gen({"nowhere.yaml", "--json"});
  EXPECT_EQ(finished.code, 1);
  const std::string message = "cannot open the file: No such file or directory";
  EXPECT_EQ(finished.err,
            "nowhere.yaml: error[E009]: " + message + "\n  note: check the path of the matrix\n");
  EXPECT_EQ(nlohmann::json::parse(finished.out)["errors"][0]["code"], "E009");
  EXPECT_EQ(nlohmann::json::parse(finished.out)["errors"][0]["message"], message);
  fs::create_directory(folder_ / "folder.yaml");
  EXPECT_EQ(gen({"folder.yaml"}).err,
            "folder.yaml: error[E009]: is a directory, not a matrix file\n"
            "  note: name the matrix inside it, such as DIR/matrix.yaml\n");
}

TEST_F(MatrixCommand, RefusesAnAxisThatIsNoKeyAndTooManyCells) {
  const std::string base = std::string(kMatrix).substr(0, std::string(kMatrix).find("axes:"));
  write("key.yaml", base + "axes:\n  model.topk: [1, 2]\n");
  const Finished key = gen({"key.yaml"});
  EXPECT_EQ(key.code, 1);
  EXPECT_EQ(key.err,
            "key.yaml:8:3: error[E001]: unknown key model.topk\n"
            "  note: did you mean model.top_k?\n");
  std::string tokens = "1";
  for (int i = 2; i <= 171; ++i) tokens += ", " + std::to_string(i);
  write("large.yaml",
        base + "axes:\n  model.top_k: [1, 2, 3]\n  capacity.tokens_per_rank: [" + tokens + "]\n");
  const Finished large = gen({"large.yaml"});
  EXPECT_EQ(large.code, 1);
  EXPECT_EQ(large.err,
            "large.yaml:8:3: error[E009]: the axes give 3 x 171 = 513 cells; the limit is 512\n"
            "  note: give an axis fewer values, let keys vary together (KEY, KEY:), or make two "
            "files\n");
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST_F(MatrixCommand, RefusesReportsItCannotWriteBeforeAnyWork) {
  const Finished finished = gen({"m.yaml", "--html", "nowhere/r.html"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err,
              StartsWith("error[E803]: --html nowhere/r.html: its folder does not exist\n"));
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST_F(MatrixCommand, RefusesOptionsThatContradict) {
  EXPECT_EQ(gen({"m.yaml", "--emit-only", "--seeds", "2"}).code, 2);
  EXPECT_EQ(gen({"m.yaml", "--emit-only", "--no-compile"}).code, 2);
  EXPECT_EQ(gen({"m.yaml", "--jobs", "0"}).code, 2);
  EXPECT_EQ(gen({}).code, 2);
}

// Killed without a chance to say anything, the run has lost only what was running.
TEST_F(MatrixCommand, GoesOnAfterBeingKilled) {
  write("long.yaml", R"(base:
  schema_version: 1
  name: long
  model: {hidden_size: 64, num_experts: 8, top_k: 2}
  topology: {ratio: "1A1F"}
  capacity: {tokens_per_rank: 4}
axes:
  model.top_k: [1, 2, 3, 4, 5, 6, 7, 8]
)");
  const fs::path state = folder_ / "state";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (chdir(folder_.c_str()) != 0) _exit(126);
    for (std::FILE* const stream : {stdout, stderr}) {
      if (std::freopen("/dev/null", "w", stream) == nullptr) _exit(126);
    }
    execl(kGen.c_str(), kGen.c_str(), "matrix", "long.yaml", "--no-compile", "--seeds", "20",
          "--jobs", "1", "--resume", "state", nullptr);
    _exit(127);
  }
  const auto saved = [&] {
    const nlohmann::json parsed =
        nlohmann::json::parse(read(state / "afdep-matrix.json"), nullptr, false);
    return parsed.is_discarded() ? std::size_t{0} : parsed["cells"].size();
  };
  for (int i = 0; i < 3000 && saved() < 2; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  const std::size_t before = saved();
  ASSERT_GE(before, 2U);

  const Finished finished =
      gen({"long.yaml", "--no-compile", "--seeds", "20", "--resume", "state", "--json"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  const nlohmann::json report = nlohmann::json::parse(finished.out);
  std::size_t kept = 0;
  for (const nlohmann::json& cell : report["cells"]) kept += cell["kept"].get<bool>() ? 1 : 0;
  EXPECT_EQ(kept, before);
  EXPECT_EQ(report["counts"]["passed"], 8);
}

}  // namespace
}  // namespace afdep
