// The emitted sources and the plan of each folder here, compared with what is committed.
// AFDEP_BLESS=1 rewrites them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "cli/text_diff.h"
#include "generator/generate.h"
#include "generator/spec/reader.h"

namespace afdep {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = "tests/golden";

bool blessing() {
  const char* const value = std::getenv("AFDEP_BLESS");
  return value != nullptr && std::string_view(value) == "1";
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    if (fs::exists(entry.path() / "spec.yaml")) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

// The goldens of kernels that record when they pass steps.
bool is_traced(std::string_view name) { return name.starts_with("traced-"); }

Generated emit(const std::string& name, bool trace, emit::Coverage* coverage) {
  const Result<spec::Spec> spec = spec::load(kFolder / name / "spec.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  Result<Generated> generated =
      generate(*spec, {.emit_only = true, .trace = trace, .coverage = coverage});
  if (!generated.ok()) throw std::runtime_error(to_string(generated.diagnostics()));
  return std::move(*generated);
}

// Path below the golden's folder -> text.
using Files = std::map<std::string, std::string>;

Files emitted_files(const std::string& name) {
  const Generated generated = emit(name, is_traced(name), nullptr);
  return {generated.bundle.files().begin(), generated.bundle.files().end()};
}

Files committed_files(const std::string& name) {
  Files files;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder / name)) {
    const std::string path = fs::relative(entry.path(), kFolder / name);
    if (entry.is_regular_file() && path != "spec.yaml") files[path] = read(entry.path());
  }
  return files;
}

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsWhatIsEmitted) {
  const fs::path folder = kFolder / GetParam();
  const Files emitted = emitted_files(GetParam());
  const Files committed = committed_files(GetParam());
  Files all = emitted;
  all.insert(committed.begin(), committed.end());
  for (const auto& [path, unused] : all) {
    const bool is_emitted = emitted.contains(path);
    const std::string old_text = committed.contains(path) ? committed.at(path) : "";
    const std::string new_text = is_emitted ? emitted.at(path) : "";
    if (is_emitted && committed.contains(path) && old_text == new_text) continue;
    const std::string name = folder / path;
    const std::string diff = cli::unified_diff(old_text, new_text, name, "emitted");
    if (!blessing()) {
      ADD_FAILURE() << diff << "If this change is meant: ./dev bless, read the diff, commit it.";
    } else if (is_emitted) {
      fs::create_directories((folder / path).parent_path());
      std::ofstream(folder / path, std::ios::binary) << new_text;
      std::cout << diff;
    } else {
      fs::remove(folder / path);
      std::cout << diff;
    }
  }
}

TEST_P(Golden, SecondRunGivesTheSameBytes) {
  EXPECT_EQ(emitted_files(GetParam()), emitted_files(GetParam()));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, Golden, ::testing::ValuesIn(golden_names()), test_name);

// Every template text is in some golden, so that reviewers, the compilers and the lint see all of
// it.
TEST(GoldenCoverage, BothSidesOfEveryDirectiveAreTaken) {
  emit::Coverage coverage;
  for (const std::string& name : golden_names()) {
    for (const bool trace : {false, true}) emit(name, trace, &coverage);
  }
  for (const emit::MissedSide& missed : coverage.missed()) {
    // The lists of peers and of constants are never empty.
    if (missed.directive.is_loop && missed.side == emit::Side::kNotTaken) continue;
    ADD_FAILURE() << to_string(missed);
  }
}

}  // namespace
}  // namespace afdep
