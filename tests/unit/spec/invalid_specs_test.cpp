// Every refused spec with its exact messages: tests/specs/invalid/CODE-WHAT.yaml and .expected.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <string>

#include "generator/spec/reader.h"
#include "runtime/support/error_code.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

constexpr const char* kFolder = "tests/specs/invalid";

std::string messages_of(const std::filesystem::path& path) {
  const Result<Spec> spec = parse(file_text(path), path.filename().string());
  return spec ? "accepted\n" : to_string(spec.diagnostics());
}

void print_lines(const std::string& text, char mark) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) std::cout << mark << ' ' << line << '\n';
}

class InvalidSpec : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(InvalidSpec, IsRefusedWithTheExpectedMessages) {
  std::filesystem::path expected = GetParam();
  expected.replace_extension(".expected");
  const std::string actual = messages_of(GetParam());
  const std::string before = file_text(expected);
  if (std::getenv("AFDEP_BLESS") != nullptr && actual != before) {
    std::cout << expected.string() << '\n';
    print_lines(before, '-');
    print_lines(actual, '+');
    std::ofstream(expected, std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, file_text(expected)) << "AFDEP_BLESS=1 rewrites the expected messages";
}

TEST_P(InvalidSpec, HasTheCodeOfItsName) {
  const std::string code = GetParam().filename().string().substr(0, 4);
  EXPECT_NE(messages_of(GetParam()).find("error[" + code + "]: "), std::string::npos);
}

TEST_P(InvalidSpec, HasAPlaceAndARemedyForEachError) {
  const Result<Spec> spec = parse(file_text(GetParam()), "f.yaml");
  ASSERT_FALSE(spec.ok());
  for (const Diagnostic& error : spec.diagnostics()) {
    EXPECT_EQ(error.place.file, "f.yaml") << error.message;
    EXPECT_GT(error.place.line, 0) << error.message;
    EXPECT_GT(error.place.column, 0) << error.message;
    EXPECT_FALSE(error.note.empty()) << error.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, InvalidSpec, testing::ValuesIn(spec_files(kFolder)),
                         [](const auto& file) { return test_name(file.param); });

TEST(InvalidSpecs, CoverEveryCodeOfASpec) {
  std::set<std::string> covered;
  for (const auto& path : spec_files(kFolder))
    covered.insert(path.filename().string().substr(0, 4));
  for (const ErrorInfo& info : error_table()) {
    const auto number = static_cast<unsigned>(info.code);
    const bool of_a_spec = number < 300 || (number >= 401 && number <= 404);
    // A matrix file is not a spec; ranks disagree at run time.
    const bool elsewhere =
        info.code == ErrorCode::kMatrixFile || info.code == ErrorCode::kRanksDisagree;
    if (!of_a_spec || elsewhere) continue;
    EXPECT_TRUE(covered.contains(to_string(info.code))) << to_string(info.code);
  }
}

TEST(InvalidSpecs, HaveNoStrayExpectedFile) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    std::filesystem::path spec = entry.path();
    if (spec.extension() != ".expected") continue;
    EXPECT_TRUE(std::filesystem::exists(spec.replace_extension(".yaml"))) << entry.path();
  }
}

}  // namespace
}  // namespace afdep::spec
