#include "generator/matrix/node_text.h"

#include <gtest/gtest.h>

#include "generator/spec/sink.h"
#include "generator/spec/tree.h"

namespace afdep::matrix {
namespace {

std::string round_trip(const std::string& text) {
  spec::Sink sink;
  const std::optional<spec::Node> node = spec::read_tree(text, "f", sink);
  return node ? to_text(*node) : "unreadable";
}

TEST(NodeText, KeepsPlainAndQuotedScalarsApart) {
  EXPECT_EQ(round_trip("8"), "8");
  EXPECT_EQ(round_trip("\"8\""), "\"8\"");
  EXPECT_EQ(round_trip("'it''s'"), "\"it's\"");
  EXPECT_EQ(round_trip(R"("a \"b\" \\ c")"), R"("a \"b\" \\ c")");
}

TEST(NodeText, WritesCollectionsOnOneLine) {
  EXPECT_EQ(round_trip("- 1\n- [2, x]\n"), "[1, [2, x]]");
  EXPECT_EQ(round_trip("attention: 24\nffn: auto\n"), "{attention: 24, ffn: auto}");
  EXPECT_EQ(round_trip("[]"), "[]");
}

TEST(NodeText, QuotesWhatBracketsWouldTakeApart) {
  EXPECT_EQ(round_trip("- a, b\n"), "[\"a, b\"]");
}

}  // namespace
}  // namespace afdep::matrix
