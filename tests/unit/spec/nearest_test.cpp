#include "generator/spec/nearest.h"

#include <gtest/gtest.h>

#include <array>

namespace afdep::spec {
namespace {

TEST(EditDistance, CountsSlips) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);  // two substitutions, one insertion
  EXPECT_EQ(edit_distance("ratoi", "ratio"), 1);     // one swap
  EXPECT_EQ(edit_distance("ca", "abc"), 3);          // no edit inside a swapped pair
}

TEST(Nearest, TakesTheClosest) {
  constexpr std::array<std::string_view, 4> kWords = {"fp16", "fp8_e4m3", "top_k", "num_experts"};
  EXPECT_EQ(nearest("topk", kWords), "top_k");
  EXPECT_EQ(nearest("fp8", kWords), "fp8_e4m3");
  EXPECT_EQ(nearest("num_expert", kWords), "num_experts");
  EXPECT_EQ(nearest("hidden", kWords), std::nullopt);
  EXPECT_EQ(nearest("", kWords), std::nullopt);
  EXPECT_EQ(nearest("zz", kWords), std::nullopt);
  EXPECT_EQ(nearest(std::string(100'000, 'x'), kWords), std::nullopt);
}

}  // namespace
}  // namespace afdep::spec
