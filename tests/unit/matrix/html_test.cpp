#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "generator/matrix/reports.h"
#include "generator/spec/printer.h"
#include "tests/unit/matrix/sample.h"

namespace afdep::matrix {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

Report sample_report(const Matrix& matrix) {
  Report report = report_on(matrix);
  for (const std::size_t i : {0U, 1U}) {
    const Result<spec::Spec> spec = cell_spec(matrix, report.cells[i].cell);
    report.cells[i].spec_text = spec::print(*spec);
    report.cells[i].digest = "00ff";
  }
  report.cells[3].result.trace = "</script><script>alert('<!--')</script>";
  return report;
}

TEST(Html, NamesNoAddressAndNoOtherFile) {
  const Matrix matrix = matrix_of(kSample);
  const std::string page = to_html(sample_report(matrix));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("//cdn")));
  EXPECT_THAT(page, Not(HasSubstr("@import")));
  EXPECT_THAT(page, Not(HasSubstr("@font-face")));
  EXPECT_THAT(page, Not(HasSubstr("<link")));
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("href=")));
  EXPECT_THAT(page, Not(HasSubstr("fetch(")));
  // Of marks inside the pictures, nothing else.
  const std::regex address("url\\(([^)]*)\\)");
  for (auto it = std::sregex_iterator(page.begin(), page.end(), address);
       it != std::sregex_iterator(); ++it) {
    EXPECT_THAT((*it)[1].str(), ::testing::StartsWith("#"));
  }
}

TEST(Html, CarriesTheReportAsDataThatCannotEndTheScript) {
  const Matrix matrix = matrix_of(kSample);
  const std::string page = to_html(sample_report(matrix));
  const std::string text =
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_THAT(text, Not(HasSubstr("<")));
  const nlohmann::json data = nlohmann::json::parse(text);
  ASSERT_EQ(data["cells"].size(), 6U);
  EXPECT_EQ(data["cells"][3]["trace"], "</script><script>alert('<!--')</script>");
  EXPECT_EQ(data["cells"][4]["values"]["topology.ratio"], "\"2A2F\"");
  EXPECT_EQ(data["axes"][0]["base"][0], "2");
  EXPECT_EQ(data["cells"][2]["expected"], "E207");
  // 1A1F and 2A2F look different; the refused cells have no plan.
  EXPECT_EQ(data["pictures"].size(), 2U);
  EXPECT_EQ(data["cells"][1]["picture"], 1);
  EXPECT_FALSE(data["cells"][2].contains("picture"));
  EXPECT_THAT(data["pictures"][0].get<std::string>(), ::testing::StartsWith("<svg"));
}

TEST(Html, EscapesTheNameOfTheMatrix) {
  Matrix matrix = matrix_of(kSample);
  matrix.file = "a<b>&.yaml";
  EXPECT_THAT(to_html(report_on(matrix)), HasSubstr("<title>Matrix a&lt;b>&amp;.yaml</title>"));
}

}  // namespace
}  // namespace afdep::matrix
