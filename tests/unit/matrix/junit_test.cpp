#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "generator/matrix/reports.h"
#include "tests/unit/matrix/markup.h"
#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(JUnit, HasATestCaseACell) {
  const Matrix matrix = matrix_of(kSample);
  Report report = report_on(matrix);
  // passed, expected, refused, failed, error, crashed
  report.cells[2].result.diagnostics = {
      {ErrorCode::kTopK, {"sample.yaml", 8, 20}, "top_k <9> & \"more\"", "use less"}};
  report.cells[3].result.diagnostics = {
      {ErrorCode::kVerification, {}, "wrong\x01 data\nsecond line", ""}};
  report.cells[5].result.trace = "stack </failure> <!-- ]]>";
  const std::string xml = to_junit(report);
  const std::vector<testing::Element> elements = testing::elements_of(xml);
  ASSERT_GE(elements.size(), 2U);
  EXPECT_EQ(elements[0].name, "testsuites");
  EXPECT_EQ(elements[0].attributes,
            " name=\"afdep-gen matrix\" tests=\"6\" failures=\"2\" errors=\"2\" time=\"12.500\"");
  EXPECT_EQ(elements[1].name, "testsuite");
  EXPECT_EQ(elements[1].attributes,
            " name=\"sample\" tests=\"6\" failures=\"2\" errors=\"2\" skipped=\"0\" "
            "time=\"12.500\"");
  const auto count = [&](std::string_view name, std::string_view parent) {
    return std::ranges::count_if(elements, [&](const testing::Element& element) {
      return element.name == name && element.parent == parent;
    });
  };
  EXPECT_EQ(count("testcase", "testsuite"), 6);
  EXPECT_EQ(count("failure", "testcase"), 2);
  EXPECT_EQ(count("error", "testcase"), 2);
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"afdep.matrix.sample\" name=\"002 top_k=1 "
                             "ratio=2A2F\" time=\"0.500\"/>"));
  EXPECT_THAT(xml, HasSubstr("message=\"E202: top_k &lt;9&gt; &amp; &quot;more&quot;\""));
  EXPECT_THAT(xml, HasSubstr("wrong? data"));
  EXPECT_THAT(xml, Not(HasSubstr("\x01")));
}

TEST(JUnit, SkipsWhatAnInterruptionLeft) {
  const Matrix matrix = matrix_of(kSample);
  Report report = report_on(matrix);
  for (RunCell& run : report.cells) run.result.outcome = Outcome::kNotRun;
  const std::string xml = to_junit(report);
  EXPECT_NO_THROW(testing::elements_of(xml));
  EXPECT_THAT(xml, HasSubstr("skipped=\"6\""));
}

}  // namespace
}  // namespace afdep::matrix
