#include "cli/text_diff.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace afdep::cli {
namespace {

TEST(TextDiff, EqualTextsHaveNone) {
  EXPECT_EQ(unified_diff("a\nb\n", "a\nb\n", "x", "y"), "");
  EXPECT_EQ(unified_diff("", "", "x", "y"), "");
}

// Expected texts are what GNU diff 3.8 prints with -u (--label x --label y).
TEST(TextDiff, OneLineChanged) {
  EXPECT_EQ(unified_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n", "x", "y"),
            "--- x\n+++ y\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
}

TEST(TextDiff, FromAndToNothing) {
  EXPECT_EQ(unified_diff("", "a\nb\n", "x", "y"), "--- x\n+++ y\n@@ -0,0 +1,2 @@\n+a\n+b\n");
  EXPECT_EQ(unified_diff("a\n", "", "x", "y"), "--- x\n+++ y\n@@ -1 +0,0 @@\n-a\n");
}

TEST(TextDiff, FarChangesAreTwoHunksAndNearOnesOne) {
  EXPECT_EQ(
      unified_diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "A\n1\n2\n3\n4\n5\n6\n7\nB\n", "x", "y"),
      "--- x\n+++ y\n@@ -1,4 +1,4 @@\n-a\n+A\n 1\n 2\n 3\n@@ -6,4 +6,4 @@\n 5\n 6\n 7\n-b\n+B\n");
  EXPECT_EQ(unified_diff("a\n1\n2\n3\n4\n5\n6\nb\n", "A\n1\n2\n3\n4\n5\n6\nB\n", "x", "y"),
            "--- x\n+++ y\n@@ -1,8 +1,8 @@\n-a\n+A\n 1\n 2\n 3\n 4\n 5\n 6\n-b\n+B\n");
}

TEST(TextDiff, MissingNewlineIsADifference) {
  EXPECT_EQ(unified_diff("a", "a\n", "x", "y"),
            "--- x\n+++ y\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
}

TEST(TextDiff, RunsOfSpacesMayNotCount) {
  const auto diff = [](std::string_view a, std::string_view b) {
    return unified_diff(a, b, "x", "y", Spaces::kIgnoreRuns);
  };
  EXPECT_EQ(diff("a;  // why\n", "a;      // why\n"), "");
  EXPECT_EQ(diff("a;  // why\nb\n", "a;    // why\nc\n"),
            "--- x\n+++ y\n@@ -1,2 +1,2 @@\n a;  // why\n-b\n+c\n");
  EXPECT_EQ(diff("  a\n", "    a\n"), "--- x\n+++ y\n@@ -1 +1 @@\n-  a\n+    a\n");
  EXPECT_EQ(diff("a b\n", "ab\n"), "--- x\n+++ y\n@@ -1 +1 @@\n-a b\n+ab\n");
}

// Applying a diff of two random texts to the first gives the second.
TEST(TextDiff, AppliesToRandomTexts) {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string texts[2];
    for (std::string& text : texts) {
      for (auto lines = random() % 30; lines > 0; --lines) {
        text += std::string(1, static_cast<char>('a' + random() % 4)) + "\n";
      }
    }
    const std::string diff = unified_diff(texts[0], texts[1], "x", "y");
    std::string result;
    std::size_t at = 0;  // byte of texts[0]; every line is two bytes
    std::size_t pos = diff.empty() ? 0 : diff.find("@@");
    while (pos < diff.size()) {
      const std::string line = diff.substr(pos, diff.find('\n', pos) - pos);
      pos += line.size() + 1;
      if (line[0] == '@') {
        const std::string range = line.substr(4, line.find(' ', 4) - 4);
        const bool none = range.ends_with(",0");
        const std::size_t start = 2 * (std::stoul(range) - (none ? 0 : 1));
        ASSERT_GE(start, at);
        result += texts[0].substr(at, start - at);
        at = start;
      } else {
        if (line[0] != '+') {
          ASSERT_EQ(texts[0].substr(at, 2), line.substr(1) + "\n");
          at += 2;
        }
        if (line[0] != '-') result += line.substr(1) + "\n";
      }
    }
    result += texts[0].substr(at);
    ASSERT_EQ(result, texts[1]) << diff;
  }
}

}  // namespace
}  // namespace afdep::cli
