// Every refused matrix file with its exact messages: tests/specs/matrix/CODE-WHAT.yaml, .expected.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "generator/matrix/matrix.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::matrix {
namespace {

using spec::file_text;
using spec::spec_files;

constexpr const char* kFolder = "tests/specs/matrix";

std::string messages_of(const std::filesystem::path& path) {
  const Result<Matrix> matrix = read(file_text(path), path.filename().string());
  return matrix ? "accepted\n" : to_string(matrix.diagnostics());
}

class InvalidMatrix : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(InvalidMatrix, IsRefusedWithTheExpectedMessages) {
  std::filesystem::path expected = GetParam();
  expected.replace_extension(".expected");
  const std::string actual = messages_of(GetParam());
  if (std::getenv("AFDEP_BLESS") != nullptr && actual != file_text(expected)) {
    std::ofstream(expected, std::ios::binary) << actual;
  }
  EXPECT_EQ(actual, file_text(expected)) << "AFDEP_BLESS=1 rewrites the expected messages";
}

TEST_P(InvalidMatrix, HasTheCodeOfItsNameAndAPlaceAndARemedyForEachError) {
  const Result<Matrix> matrix = read(file_text(GetParam()), "f.yaml");
  ASSERT_FALSE(matrix.ok());
  for (const Diagnostic& error : matrix.diagnostics()) {
    EXPECT_EQ(to_string(error.code), GetParam().filename().string().substr(0, 4)) << error.message;
    EXPECT_EQ(error.place.file, "f.yaml") << error.message;
    EXPECT_GT(error.place.line, 0) << error.message;
    EXPECT_FALSE(error.note.empty()) << error.message;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, InvalidMatrix, testing::ValuesIn(spec_files(kFolder)),
                         [](const auto& file) { return spec::test_name(file.param); });

TEST(InvalidMatrices, AreNamedWhereTheFileCannotBeRead) {
  const Result<Matrix> matrix = load("tests/specs/matrix/nowhere.yaml");
  ASSERT_FALSE(matrix.ok());
  EXPECT_EQ(to_string(matrix.diagnostics()),
            "tests/specs/matrix/nowhere.yaml: error[E009]: cannot open the file: No such file or "
            "directory\n  note: check the path of the matrix\n");
}

TEST(InvalidMatrices, HaveNoStrayExpectedFile) {
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    std::filesystem::path matrix = entry.path();
    if (matrix.extension() != ".expected") continue;
    EXPECT_TRUE(std::filesystem::exists(matrix.replace_extension(".yaml"))) << entry.path();
  }
}

}  // namespace
}  // namespace afdep::matrix
