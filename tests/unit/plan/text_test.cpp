#include "generator/plan/text.h"

#include <gmock/gmock.h>

#include <sstream>

#include "generator/plan/json.h"
#include "generator/plan/text_table.h"
#include "tests/unit/plan/sample_plan.h"

namespace afdep::plan {
namespace {

using ::testing::HasSubstr;
using testing::sample_plan;

TEST(TextTable, AlignsAndWraps) {
  TextTable table({"name", ">bytes", "what"});
  table.add({"a", "1", "one"}, "a note");
  table.add({"longer", "12345", std::string(60, 'x') + " " + std::string(60, 'y')});
  EXPECT_EQ(table.print(1), " name    bytes  what\n" + std::string(" a           1  one\n") +  //
                                "   a note\n" +                                                //
                                " longer  12345  " + std::string(60, 'x') + "\n" +             //
                                std::string(16, ' ') + std::string(60, 'y') + "\n");
}

TEST(TextTable, HumanBytes) {
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(4096), "4.0 KiB");
  EXPECT_EQ(human_bytes(2.5 * 1024 * 1024), "2.5 MiB");
  EXPECT_EQ(human_bytes(3.25 * 1024 * 1024 * 1024), "3.25 GiB");
}

TEST(PlanText, TellsWhatTheExchangeIs) {
  const std::string text = print(sample_plan());
  EXPECT_THAT(text, HasSubstr("plan of sample\n"));
  EXPECT_THAT(text, HasSubstr("  0..1   ffn        0..1   8 each: rank i has [8 i, 8 i + 8)\n"
                              "  2..3   attention  0..1   -\n"));
  EXPECT_THAT(text, HasSubstr("ffn window, 8192 bytes (8.0 KiB)\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  rows           3072   4096       2      2      8         128         "
                        "1024         2048\n    rows, a block a source, an item a token\n"));
  EXPECT_THAT(text, HasSubstr("bucket 2: flag_in_data, 8 receive rows an ffn rank\n"));
  EXPECT_THAT(text, HasSubstr("  critical path  2 hops: dispatch -(rows)-> receive, then reply "
                              "-(replies)-> collect\n"));
  EXPECT_THAT(text,
              HasSubstr("  floor          2.91 us = launches 0.94 + hops 1.72 + bytes 0.25\n"));
  EXPECT_THAT(text,
              HasSubstr("  receive   ffn          24      384    4096  (384, 1)          <= 168  "
                        "kernels/receive_flag_in_data.cu.in\n"));
  EXPECT_THAT(text, HasSubstr("    3  await                  done   wait for done\n"));
  EXPECT_THAT(text, HasSubstr("    kRowBytes  128  64 x bf16\n"));
  EXPECT_THAT(text, HasSubstr("    structure  not has_view, spelled\n"));
}

TEST(PlanText, LinesFitAndHaveNoTrailingSpaces) {
  for (const int ffn : {1, 2, 16}) {
    std::istringstream lines(print(sample_plan({.attention_ranks = 48,
                                                .ffn_ranks = ffn,
                                                .hidden = 7168,
                                                .experts = 256,
                                                .top_k = 8,
                                                .packet_bucket = 32,
                                                .chunked_bucket = 65536})));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), kTextColumns) << line;
      EXPECT_FALSE(line.ends_with(' ')) << line;
    }
  }
}

TEST(PlanText, IsDeterministic) { EXPECT_EQ(print(sample_plan()), print(sample_plan())); }

TEST(PlanJson, HoldsTheSameFigures) {
  const std::string json = to_json(sample_plan());
  EXPECT_THAT(json, HasSubstr("\n  \"name\": \"sample\",\n"));
  EXPECT_THAT(json, HasSubstr("\n  \"window_bytes\": 8192,\n"));
  EXPECT_THAT(json, HasSubstr("\"total_us\": 2.91"));
  EXPECT_THAT(json, HasSubstr("\"symbol\": \"afdep_sample_collect_b8\""));
  EXPECT_THAT(json, HasSubstr("\"receive_rows\": 32"));
  EXPECT_TRUE(json.ends_with("}\n"));
}

}  // namespace
}  // namespace afdep::plan
