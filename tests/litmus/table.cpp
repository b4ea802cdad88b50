// The table of docs/memory-model.md says what the tests assert.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "tests/litmus/litmus.h"

namespace afdep::litmus {
namespace {

constexpr const char* kPage = "docs/memory-model.md";
constexpr const char* kBegin = "<!-- litmus tests: written by ./dev bless -->\n";
constexpr const char* kEnd = "<!-- end of litmus tests -->\n";

std::string joined(const std::vector<std::string>& outcomes) {
  std::string text;
  for (const std::string& outcome : outcomes) {
    if (!text.empty()) text += ", ";
    text += outcome.empty() ? "no report" : outcome;
  }
  return text;
}

std::string table() {
  std::string text = "| test | rule | what | allowed | forbidden |\n|---|---|---|---|---|\n";
  for (const Litmus& litmus : catalogue()) text += table_row(litmus) + "\n";
  return text;
}

}  // namespace

std::string table_row(const Litmus& litmus) {
  std::string allowed = litmus.allowed.size() == 16 ? "all 16" : joined(litmus.allowed);
  if (!litmus.not_produced.empty()) {
    allowed += fmt::format("; by PTX also {}, not produced", joined(litmus.not_produced));
  }
  return fmt::format("| {} | {} | {} | {} | {} |", litmus.name, litmus.rule, litmus.what, allowed,
                     joined(litmus.forbidden));
}

namespace {

TEST(LitmusTable, PageSaysWhatTheTestsAssert) {
  std::ifstream in(kPage);
  ASSERT_TRUE(in.is_open()) << kPage;
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos) << "no line " << kBegin;
  ASSERT_NE(end, std::string::npos) << "no line " << kEnd;
  const std::size_t from = begin + std::string(kBegin).size();
  if (page.substr(from, end - from) == table()) return;
  if (std::getenv("AFDEP_BLESS") != nullptr) {
    std::ofstream(kPage) << page.substr(0, from) << table() << page.substr(end);
    return;
  }
  EXPECT_EQ(page.substr(from, end - from), table()) << "./dev bless rewrites it";
}

}  // namespace
}  // namespace afdep::litmus
