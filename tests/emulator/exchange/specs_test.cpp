// Every spec that is shipped, at reduced size.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "generator/verify/verify.h"

namespace afdep::verify {
namespace {

std::vector<std::string> spec_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("specs")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

class ShippedSpec : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedSpec, Verifies) {
  const std::string file = "specs/" + GetParam() + ".yaml";
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  VerifyOptions options;
  options.seeds = 1;
  const Result<VerifyReport> report = verify(text, file, options);
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  EXPECT_TRUE(report->failures.empty()) << to_string(report->failures);
  EXPECT_GE(report->exchanges, 6);
  EXPECT_GT(report->rows, 0);
  EXPECT_EQ(report->faults, 8);  // absent, late, dying, corrupting: a source and a worker each
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedSpec, ::testing::ValuesIn(spec_names()), test_name);

}  // namespace
}  // namespace afdep::verify
