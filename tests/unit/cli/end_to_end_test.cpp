// afdep-gen and afdep-bench as a user meets them: exit codes, what goes to stdout and stderr,
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#if AFDEP_HAS_EMULATOR
#include "generator/verify/token.h"
#endif
#include "tests/unit/cli/process.h"

namespace afdep {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kGen = AFDEP_GEN;
const std::string kBench = AFDEP_BENCH;
const fs::path kTiny = fs::absolute("specs/tiny-1a1f.yaml");

constexpr const char* kSpec = R"(schema_version: 1
name: little
model: {hidden_size: 64, num_experts: 4, top_k: 2}
topology: {ratio: "1A1F"}
capacity: {tokens_per_rank: 4}
)";

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Path below `folder` -> contents.
std::map<std::string, std::string> tree(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), folder)] = read(entry.path());
  }
  return files;
}

class EndToEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "afdep cli XXXXXX";  // with spaces, on purpose
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    fs::permissions(folder_, fs::perms::owner_all);
    fs::remove_all(folder_);
  }

  [[nodiscard]] fs::path path(const std::string& name) const { return folder_ / name; }
  fs::path file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  // afdep-gen in the test's folder, with the cache there.
  [[nodiscard]] Finished gen(std::vector<std::string> arguments,
                             testing::ProcessOptions options = {}) const {
    arguments.insert(arguments.begin(), kGen);
    options.folder = folder_;
    options.variables["XDG_CACHE_HOME"] = path("cache");
    return testing::run(arguments, options);
  }

  fs::path folder_;
};

TEST_F(EndToEnd, VersionAndHelpAreData) {
  const Finished version = gen({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_EQ(version.out, "afdep-gen " AFDEP_VERSION "\n");
  const Finished help = gen({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("verify"), HasSubstr("Exit codes: 0 ok")));
  EXPECT_THAT(help.err, IsEmpty());
}

TEST_F(EndToEnd, MistakesOfTheCommandLineAreUsage) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--no-such-option"},
           {kTiny},      // no -o
           {"-o", "b"},  // no spec
           {kTiny, "-o", "b", "more"},
           {"plan"},
           {"plan", kTiny, "--bucket", "0"},
           {"plan", kTiny, "--bucket", "many"},
           {"verify", kTiny, "--seeds", "0"},
           {"verify", kTiny, "--seeds", "2", "--seed", "1"},
           {"diff", kTiny},
           {"-o", "b", "check", kTiny},
       }) {
    const Finished finished = gen(arguments);
    EXPECT_EQ(finished.code, 2) << ::testing::PrintToString(arguments) << finished.err;
    EXPECT_THAT(finished.out, IsEmpty());
    EXPECT_THAT(finished.err, Not(IsEmpty()));
  }
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(EndToEnd, AMisspeltCommandIsNamed) {
  const Finished finished = gen({"chek", kTiny});
  EXPECT_EQ(finished.code, 2);
  EXPECT_THAT(finished.err,
              StartsWith("chek is neither a command nor a file; did you mean check?\n  note: "));
  EXPECT_THAT(gen({"absent.yaml"}).err,
              StartsWith("absent.yaml is neither a command nor a file\n"));
}

TEST_F(EndToEnd, CheckNamesEveryMistakeOfEverySpec) {
  const fs::path bad = file("bad.yaml", std::string(kSpec) + "checks: {rout: report}\nstats: 3\n");
  const Finished finished = gen({"check", kTiny, bad, path("absent.yaml")});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.out, AllOf(HasSubstr(": ok: tiny-1a1f, 1A1F"), Not(HasSubstr("bad.yaml"))));
  EXPECT_THAT(finished.err, HasSubstr("bad.yaml:6:10: error[E001]"));
  EXPECT_THAT(finished.err, HasSubstr("bad.yaml:7:"));
  EXPECT_THAT(finished.err, HasSubstr("absent.yaml"));
}

TEST_F(EndToEnd, CheckAsJson) {
  const fs::path bad = file("bad.yaml", std::string(kSpec) + "checks: {rout: report}\n");
  const Finished finished = gen({"check", "--json", kTiny, bad});
  EXPECT_EQ(finished.code, 1);
  const auto report = nlohmann::json::parse(finished.out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["specs"][0]["ok"], true);
  const auto& error = report["specs"][1]["errors"][0];
  EXPECT_EQ(error["code"], "E001");
  EXPECT_EQ(error["line"], 6);
  EXPECT_EQ(error["column"], 10);
}

TEST_F(EndToEnd, UnreadableSpecs) {
  EXPECT_THAT(gen({"check", file("empty.yaml", "")}).err, HasSubstr("error[E000]"));
  EXPECT_THAT(gen({"check", file("bytes.yaml", "name: \xff\n")}).err, HasSubstr("error[E000]"));
  EXPECT_THAT(gen({"check", file("large.yaml", std::string(64'000'000, '#'))}).err,
              HasSubstr("error[E000]"));
  EXPECT_THAT(gen({"check", folder_}).err, HasSubstr("error[E000]"));
  EXPECT_EQ(gen({"check", "-"}, {.input = ""}).code, 1);
  EXPECT_EQ(gen({"check", "-"}, {.input = std::string(64'000'000, '#')}).code, 1);
}

TEST_F(EndToEnd, SpecFromStandardInput) {
  const Finished finished = gen({"check", "-"}, {.input = kSpec});
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.out, "-: ok: little, 1A1F, 1 bucket\n");
  const Finished bad = gen({"check", "-"}, {.input = "name: X\n"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("<stdin>:1:7: error[E004]"));
}

TEST_F(EndToEnd, PrintIsReadableAgain) {
  const Finished printed = gen({"print", kTiny, "--resolved"});
  EXPECT_EQ(printed.code, 0) << printed.err;
  EXPECT_THAT(printed.out, HasSubstr("# default"));
  EXPECT_EQ(gen({"check", "-"}, {.input = printed.out}).code, 0);
}

TEST_F(EndToEnd, EmitOnlyWritesSourcesAndPlan) {
  const fs::path spec = file("a spec.yaml", kSpec);
  const Finished finished = gen({spec, "-o", "a bundle", "--emit-only"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_THAT(finished.out, StartsWith("a bundle: little, "));
  EXPECT_THAT(finished.err, IsEmpty());
  const auto files = tree(path("a bundle"));
  EXPECT_TRUE(files.contains("manifest.json"));
  EXPECT_TRUE(files.contains("plan.txt"));
  EXPECT_TRUE(files.contains("src/attention_dispatch_b4.cu"));
  for (const auto& [name, text] : files) {
    EXPECT_THAT(name, Not(HasSubstr("cubin")));
    EXPECT_THAT(text, Not(HasSubstr(folder_.string()))) << name << " holds a path of this machine";
  }
}

TEST_F(EndToEnd, TwoRunsGiveTheSameBytes) {
  const fs::path spec = file("s.yaml", kSpec);
  const Finished cold = gen({spec, "-o", "one"});
  ASSERT_EQ(cold.code, 0) << cold.err;
  // The second run compiles again, elsewhere, instead of reading the cache.
  testing::ProcessOptions elsewhere{.folder = folder_};
  elsewhere.variables["XDG_CACHE_HOME"] = path("cache 2");
  fs::create_directory(path("deep"));
  const Finished second = testing::run({kGen, spec, "-o", path("deep/two")}, elsewhere);
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_EQ(tree(path("one")), tree(path("deep/two")));
  EXPECT_TRUE(tree(path("one")).contains("bin/sm_90a/afdep_little_dispatch_b4.cubin"))
      << ::testing::PrintToString(tree(path("one")).begin()->first);
  // A bundle may be replaced by another one.
  EXPECT_EQ(gen({spec, "-o", "one", "--emit-only"}).code, 0);
}

TEST_F(EndToEnd, ArchesAreThoseOfTheOption) {
  const fs::path spec = file("s.yaml", kSpec);
  const Finished finished = gen({spec, "-o", "b", "--arch", "sm_100a,sm_90a", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const auto report = nlohmann::json::parse(finished.out);
  EXPECT_EQ(report["ok"], true);
  ASSERT_FALSE(report["kernels"].empty());
  for (const auto& kernel : report["kernels"]) EXPECT_EQ(kernel["cubins"].size(), 2U);
  EXPECT_TRUE(fs::exists(path("b/bin/sm_100a")));
}

TEST_F(EndToEnd, UnknownArchIsRefused) {
  const Finished finished = gen({kTiny, "-o", "b", "--arch", "sm_90a,sm_12"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("error[E402]: --arch sm_12 is not an architecture"),
                                  HasSubstr("known are sm_90a, sm_100a")));
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(EndToEnd, ForeignOutputFolderIsLeftAlone) {
  fs::create_directory(path("home"));
  file("home/thesis.txt", "irreplaceable");
  const Finished finished = gen({kTiny, "-o", "home", "--emit-only", "--json"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("error[E803]"), HasSubstr("thesis.txt")));
  EXPECT_EQ(nlohmann::json::parse(finished.out)["errors"][0]["code"], "E803");
  EXPECT_EQ(tree(path("home")),
            (std::map<std::string, std::string>{{"thesis.txt", "irreplaceable"}}));
}

TEST_F(EndToEnd, OutputThatCannotBeWritten) {
  EXPECT_EQ(gen({kTiny, "-o", file("plain", "x"), "--emit-only"}).code, 3);
  EXPECT_EQ(gen({kTiny, "-o", "plain/b", "--emit-only"}).code, 3);
  EXPECT_EQ(read(path("plain")), "x");
  if (geteuid() != 0) {
    fs::create_directory(path("locked"));
    fs::permissions(path("locked"), fs::perms::owner_read | fs::perms::owner_exec);
    EXPECT_EQ(gen({kTiny, "-o", "locked/b", "--emit-only"}).code, 3);
    fs::permissions(path("locked"), fs::perms::owner_all);
  }
  // Files over the limit fail as on a full disk.
  const Finished full = gen({kTiny, "-o", "b", "--emit-only"}, {.file_limit_bytes = 100});
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, HasSubstr("error[E803]"));
  EXPECT_FALSE(fs::exists(path("b")));
}

TEST_F(EndToEnd, FullStandardOutputIsReported) {
  const Finished finished = gen({"plan", kTiny}, {.out_path = "/dev/full"});
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, HasSubstr("cannot write to standard output: No space left on device"));
}

TEST_F(EndToEnd, MissingCompilerIsTheEnvironmentsFault) {
  testing::ProcessOptions options;
  options.variables["AFDEP_NVRTC"] = path("nothing.so");
  const Finished finished = gen({kTiny, "-o", "b"}, options);
  EXPECT_EQ(finished.code, 3);
  EXPECT_THAT(finished.err, HasSubstr("error[E805]"));
  EXPECT_FALSE(fs::exists(path("b")));
  // Without compiling there is no need of it.
  EXPECT_EQ(gen({kTiny, "-o", "b", "--emit-only"}, options).code, 0);
}

TEST_F(EndToEnd, PlanAsTextJsonAndPicture) {
  const std::string spec = fs::absolute("specs/qwen3-30b-a3b-2a2f.yaml");
  const Finished text = gen({"plan", spec, "--bucket", "8", "--svg", "picture.svg"});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("qwen3-30b-a3b-2a2f"));
  EXPECT_THAT(read(path("picture.svg")), StartsWith("<svg"));
  const Finished json = gen({"plan", spec, "--bucket", "8", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["buckets"].size(), 1U);
  const Finished none = gen({"plan", spec, "--bucket", "9"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err,
              AllOf(HasSubstr("error[E208]: --bucket 9"), HasSubstr("1, 8, 32, 128, 512, 2048")));
  EXPECT_EQ(gen({"plan", spec, "--svg", "no/such/folder.svg"}).code, 3);
}

TEST_F(EndToEnd, DiffShowsOnlyWhatDiffers) {
  const Finished same = gen({"diff", kTiny, kTiny});
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_THAT(same.out, IsEmpty());

  const fs::path a = file("a.yaml", kSpec);
  std::string other = kSpec;
  other.replace(other.find("little"), 6, "larger");
  other.replace(other.find("hidden_size: 64"), 15, "hidden_size: 96");
  const Finished diff = gen({"diff", a, file("b.yaml", other)});
  EXPECT_EQ(diff.code, 0) << diff.err;
  EXPECT_THAT(diff.out, StartsWith("# little and larger, both emitted as little\n"
                                   "--- a/attention_collect_b4.cu\n"
                                   "+++ b/attention_collect_b4.cu\n"));
  EXPECT_THAT(diff.out, AllOf(HasSubstr("\n-constexpr int64_t kRowBytes = 128;"),
                              HasSubstr("\n+constexpr int64_t kRowBytes = 192;"),
                              Not(HasSubstr("\n+#include"))));

  std::string buckets = kSpec;
  buckets.replace(buckets.find("tokens_per_rank: 4"), 18, "tokens_per_rank: 4, buckets: [2, 4]");
  const Finished added = gen({"diff", a, file("c.yaml", buckets)});
  EXPECT_THAT(added.out, HasSubstr("--- /dev/null\n+++ b/attention_collect_b2.cu\n"));

  const Finished bad = gen({"diff", path("x.yaml"), path("y.yaml")});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("x.yaml"), HasSubstr("y.yaml")));
}

#if AFDEP_HAS_EMULATOR
TEST_F(EndToEnd, VerifyReportsWhatItDid) {
  const Finished text = gen({"verify", kTiny, "--seeds", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("tiny-1a1f: 1A1F"), HasSubstr("  1 seeds, "),
                              HasSubstr("  verified\n")));
  EXPECT_THAT(text.err, IsEmpty());
  const Finished json = gen({"verify", kTiny, "--seed", "7", "--json"});
  EXPECT_EQ(json.code, 0) << json.err;
  const auto report = nlohmann::json::parse(json.out);
  EXPECT_EQ(report["ok"], true);
  EXPECT_GE(report["exchanges"], 12);
  EXPECT_GT(report["compared"], 1000);
  EXPECT_EQ(gen({"verify", kTiny, "--bucket", "77"}).code, 1);
}

// Tokens are made here, so that one can be of another version.
TEST_F(EndToEnd, VerifyReplaysOnlyTokensOfItsOwnSpecAndVersion) {
  const auto error = [&](const std::string& token) {
    const Finished finished = gen({"verify", kTiny, "--replay", token});
    EXPECT_EQ(finished.code, 1);
    EXPECT_THAT(finished.out, IsEmpty());
    return std::regex_replace(finished.err, std::regex("[0-9a-f]{32}"), "DIGEST");
  };
  verify::Token token;
  token.version = "0.0.9";
  token.spec_digest = "00000000000000000000000000000001";
  EXPECT_EQ(error(verify::encode(token)),
            "error[E802]: --replay: the token is of afdep 0.0.9, this is " AFDEP_VERSION
            "\n"
            "  note: replay it with that version, or verify again\n");
  token.version = AFDEP_VERSION;
  EXPECT_EQ(error(verify::encode(token)),
            kTiny.string() +
                ": error[E802]: --replay: the token is of another spec: its digest is DIGEST, that "
                "of this one is DIGEST\n"
                "  note: name the spec that the token was printed for, unchanged\n");
  EXPECT_EQ(error("r1.AAAA"),
            "error[E704]: --replay: \"r1.AAAA\" is no token, or a part of one\n"
            "  note: copy the whole word behind --replay from the report of the failure\n");
}
#endif

TEST_F(EndToEnd, BenchWithoutInputOrGpu) {
  const auto bench = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), kBench);
    return testing::run(arguments);
  };
  EXPECT_EQ(bench({}).code, 2);
  EXPECT_EQ(bench({kTiny, "--routing", "straight"}).code, 2);
  EXPECT_EQ(bench({kTiny, "--tokens", "0"}).code, 2);
  EXPECT_EQ(bench({kTiny, "--svg", path("plot.svg")}).code, 2);  // a plot of no arms
  EXPECT_EQ(bench({kTiny, "--arms", "--trace", path("t.json")}).code, 2);
  fs::create_directory(path("not a bundle"));
  const Finished one_arm = bench({path("not a bundle"), "--arms"});
  EXPECT_EQ(one_arm.code, 2);
  EXPECT_THAT(one_arm.err, HasSubstr("--arms needs a spec"));
  const Finished foreign = bench({path("not a bundle")});
  EXPECT_EQ(foreign.code, 1);
  EXPECT_THAT(foreign.err, HasSubstr("error[E804]"));
  const Finished absent = bench({path("absent.yaml")});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("absent.yaml: error[E000]: cannot open the file"));
  if (!fs::exists("/dev/nvidiactl")) {
    const Finished no_gpu = bench({kTiny, "--json"});
    EXPECT_EQ(no_gpu.code, 3);
    EXPECT_THAT(no_gpu.err, HasSubstr("error[E805]"));
    EXPECT_EQ(nlohmann::json::parse(no_gpu.out)["ok"], false);
    EXPECT_EQ(bench({kTiny, "--trace", path("trace.json")}).code, 3);
    EXPECT_FALSE(fs::exists(path("trace.json")));
    EXPECT_EQ(bench({kTiny, "--arms"}).code, 3);
  }
}

TEST_F(EndToEnd, TuneWithoutOutputOrGpu) {
  const auto tune = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {kBench, "tune"});
    return testing::run(arguments);
  };
  EXPECT_EQ(tune({"--help"}).code, 0);
  EXPECT_EQ(tune({}).code, 2);
  EXPECT_EQ(tune({kTiny}).code, 2);
  EXPECT_EQ(tune({kTiny, "-o", path("tuned.yaml"), "--sms", "0"}).code, 2);
  const Finished absent = tune({path("absent.yaml"), "-o", path("tuned.yaml")});
  EXPECT_EQ(absent.code, 1);
  EXPECT_THAT(absent.err, HasSubstr("absent.yaml: error[E000]: cannot open the file"));
  if (!fs::exists("/dev/nvidiactl")) {
    const Finished no_gpu = tune({kTiny, "-o", path("tuned.yaml"), "--json"});
    EXPECT_EQ(no_gpu.code, 3);
    EXPECT_THAT(no_gpu.err, HasSubstr("error[E805]"));
    EXPECT_EQ(nlohmann::json::parse(no_gpu.out)["ok"], false);
  }
  EXPECT_FALSE(fs::exists(path("tuned.yaml")));
  EXPECT_FALSE(fs::exists(path("tuned.yaml.state")));
}

TEST_F(EndToEnd, TracedBundleIsAnotherOne) {
  EXPECT_EQ(gen({kTiny, "-o", path("plain"), "--emit-only"}).code, 0);
  EXPECT_EQ(gen({kTiny, "-o", path("traced"), "--emit-only", "--trace"}).code, 0);
  const auto digest = [&](const std::string& folder) {
    std::ifstream in(path(folder) / "manifest.json");
    return nlohmann::json::parse(in)["spec_digest"].get<std::string>();
  };
  EXPECT_NE(digest("plain"), digest("traced"));
}

}  // namespace
}  // namespace afdep
