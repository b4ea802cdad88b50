// Every spec that is shipped, at reduced size.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "generator/verify/verify.h"
#include "tests/specs/shipped.h"

namespace afdep::verify {
namespace {

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

INSTANTIATE_TEST_SUITE_P(All, ShippedSpec, ::testing::ValuesIn(shipped_spec_names()),
                         shipped_spec_test_name);

}  // namespace
}  // namespace afdep::verify
