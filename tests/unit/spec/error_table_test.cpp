// The code's table of error codes against the one that users read.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>

#include "runtime/support/error_code.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep {
namespace {

// Code -> title of the rows "| E203 | title | ..." of a page.
std::map<std::string, std::string> documented_codes() {
  std::map<std::string, std::string> titles;
  std::istringstream page(spec::file_text("docs/errors.md"));
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("| E")) continue;
    std::istringstream cells(line.substr(2));
    std::string code, title;
    std::getline(cells, code, '|');
    std::getline(cells, title, '|');
    code = code.substr(0, code.find(' '));
    title = title.substr(1, title.find_last_not_of(' '));
    EXPECT_TRUE(titles.emplace(code, title).second) << code << " stands twice";
  }
  return titles;
}

TEST(ErrorTable, EqualsTheDocumentation) {
  std::map<std::string, std::string> in_code;
  for (const ErrorInfo& info : error_table()) in_code[to_string(info.code)] = info.title;
  EXPECT_EQ(in_code, documented_codes());
}

TEST(ErrorTable, Ascends) {
  for (std::size_t i = 1; i < error_table().size(); ++i) {
    EXPECT_LT(error_table()[i - 1].code, error_table()[i].code);
  }
}

}  // namespace
}  // namespace afdep
