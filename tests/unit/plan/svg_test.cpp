#include "generator/plan/svg.h"

#include <gmock/gmock.h>

#include <regex>
#include <vector>

#include "runtime/support/check.h"
#include "tests/unit/plan/sample_plan.h"

namespace afdep::plan {
namespace {

using ::testing::HasSubstr;
using testing::sample_plan;
using testing::SampleSize;

struct TextBox {
  double left, right, top, bottom;
  std::string text;
};

// Boxes of all texts, each character taken as 0.62 em wide (0.68 in bold), about what DejaVu Sans
// has.
std::vector<TextBox> text_boxes(const std::string& svg) {
  static const std::regex kText(
      R"re(<text x="([\d.]+)" y="([\d.]+)" font-size="(\d+)" fill="[^"]*" text-anchor="(\w+)"( font-weight="bold")?>([^<]*)</text>)re");
  static const std::regex kEntity("&[a-z]+;");
  std::vector<TextBox> boxes;
  for (std::sregex_iterator it(svg.begin(), svg.end(), kText), end; it != end; ++it) {
    const std::smatch& match = *it;
    const std::string text = std::regex_replace(match[6].str(), kEntity, "x");
    std::size_t characters = 0;
    for (const char c : text) {
      if ((static_cast<unsigned char>(c) & 0xc0u) != 0x80u) ++characters;
    }
    const double size = std::stod(match[3]);
    const double width = static_cast<double>(characters) * size * (match[5].matched ? 0.68 : 0.62);
    const double x = std::stod(match[1]);
    const double y = std::stod(match[2]);
    const std::string anchor = match[4];
    const double left = anchor == "start" ? x : anchor == "end" ? x - width : x - width / 2;
    boxes.push_back({left, left + width, y - 0.8 * size, y + 0.2 * size, text});
  }
  return boxes;
}

std::vector<SampleSize> sizes() {
  const SampleSize real{
      .hidden = 7168, .experts = 256, .top_k = 8, .packet_bucket = 32, .chunked_bucket = 2048};
  std::vector<SampleSize> all;
  for (const auto& [attention, ffn] :
       {std::pair{1, 1}, {2, 2}, {7, 1}, {1, 7}, {4, 4}, {48, 16}, {63, 1}}) {
    SampleSize size = real;
    size.attention_ranks = attention;
    size.ffn_ranks = ffn;
    size.experts = 256 / ffn * ffn;
    all.push_back(size);
  }
  return all;
}

TEST(PlanPicture, TextsStayInsideAndNeverOverlap) {
  for (const SampleSize& size : sizes()) {
    const ExchangePlan plan = sample_plan(size);
    for (const BucketPlan& bucket : plan.buckets) {
      const std::vector<TextBox> boxes = text_boxes(draw(plan, bucket.bucket));
      ASSERT_GT(boxes.size(), 30u);
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        const TextBox& a = boxes[i];
        EXPECT_GE(a.left, 0) << a.text;
        EXPECT_LE(a.right, kPictureWidth) << a.text;
        for (std::size_t j = i + 1; j < boxes.size(); ++j) {
          const TextBox& b = boxes[j];
          const bool overlap =
              a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
          EXPECT_FALSE(overlap) << '"' << a.text << "\" and \"" << b.text << '"';
        }
      }
    }
  }
}

TEST(PlanPicture, ALaneARankUpToEightRanks) {
  const std::string seven = draw(sample_plan({.attention_ranks = 7, .ffn_ranks = 1}), 2);
  EXPECT_THAT(seven, HasSubstr(">attention 6<"));
  EXPECT_THAT(seven, HasSubstr(">world rank 7<"));
  const std::string many = draw(sample_plan({.attention_ranks = 7, .ffn_ranks = 2}), 2);
  EXPECT_THAT(many, HasSubstr(">attention × 7<"));
  EXPECT_THAT(many, HasSubstr(">world ranks 2–8<"));
}

TEST(PlanPicture, NamesSignalsBytesAndFloor) {
  const std::string svg = draw(sample_plan(), 8);
  EXPECT_THAT(svg, HasSubstr(">sample · bucket 8 · chunked<"));
  EXPECT_THAT(svg, HasSubstr("floor 2.91 us = launches 0.94 + hops 1.72 + bytes 0.25"));
  EXPECT_THAT(svg, HasSubstr("rows: release_flag in row_flags"));
  EXPECT_THAT(svg, HasSubstr("2.0 KiB leave an attention rank"));
  EXPECT_THAT(svg, HasSubstr("done: done_word in done"));
  EXPECT_THAT(svg, HasSubstr("for dispatch of generation g + 2"));
}

// The window of 8192 bytes is 1136 pixels: rows start at 3072 and take 4096 bytes.
TEST(PlanPicture, RegionsAreToScale) {
  EXPECT_THAT(draw(sample_plan(), 8), HasSubstr(R"(<rect x="458.0")"));
  EXPECT_THAT(draw(sample_plan(), 8), HasSubstr(R"(width="568.0" height="36.0")"));
}

TEST(PlanPicture, EscapesText) {
  ExchangePlan plan = sample_plan();
  plan.ffn.window[0].purpose = "a < b & \"c\"";
  EXPECT_THAT(draw(plan, 2), HasSubstr(">a &lt; b &amp; &quot;c&quot;<"));
}

TEST(PlanPicture, NeedsABucketOfThePlan) {
  EXPECT_THROW((void)draw(sample_plan(), 3), InternalError);
}

}  // namespace
}  // namespace afdep::plan
