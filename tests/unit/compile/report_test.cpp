#include <gtest/gtest.h>

#include "generator/compile/compile.h"
#include "generator/compile/module.h"

namespace afdep::compile {
namespace {

// Logs as NVRTC 13.0 wrote them.
TEST(PtxasLog, LeavesNothingOfACleanReport) {
  const PtxasReport report = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 12 registers, used 1 barriers, 1200 bytes smem\n"
      "ptxas info    : Compile time = 1.614 ms\n");
  EXPECT_EQ(report.spill_bytes, 0);
  EXPECT_EQ(report.remarks, "");
}

TEST(PtxasLog, AddsUpSpillsAndKeepsWarnings) {
  const PtxasReport report = parse_ptxas_log(
      "ptxas warning : Registers are spilled to local memory in function 'k2', 232 bytes spill "
      "stores, 240 bytes spill loads\n"
      "ptxas info    : Function properties for k2\n"
      "ptxas         .     192 bytes stack frame, 232 bytes spill stores, 240 bytes spill loads\n"
      "ptxas info    : Function properties for f\n"
      "ptxas         .     8 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads");
  EXPECT_EQ(report.spill_bytes, 232 + 240 + 4 + 8);
  EXPECT_EQ(report.remarks,
            "ptxas warning : Registers are spilled to local memory in function 'k2', 232 bytes "
            "spill stores, 240 bytes spill loads\n");
}

TEST(PtxasLog, KeepsWhatItDoesNotKnow) {
  EXPECT_EQ(parse_ptxas_log("k.cu(3): warning #177-D: variable \"x\" was declared\n").remarks,
            "k.cu(3): warning #177-D: variable \"x\" was declared\n");
  EXPECT_EQ(parse_ptxas_log("").remarks, "");
}

TEST(Ceilings, AcceptFiguresAtTheLimit) {
  const CompiledModule module{.symbol = "k",
                              .arch = "sm_90a",
                              .image = {},
                              .log = {},
                              .registers = 64,
                              .spill_bytes = 0,
                              .local_bytes = 0,
                              .shared_bytes = 1200};
  EXPECT_EQ(check_ceilings(module, {.registers = 64, .shared_bytes = 1200}), Diagnostics{});
}

TEST(Ceilings, NameEachFigureOverItsLimit) {
  const CompiledModule module{.symbol = "k",
                              .arch = "sm_90a",
                              .image = {},
                              .log = {},
                              .registers = 65,
                              .spill_bytes = 8,
                              .local_bytes = 16,
                              .shared_bytes = 1201};
  const Diagnostics found = check_ceilings(module, {.registers = 64, .shared_bytes = 1200});
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(found[0].message, "k for sm_90a: 65 registers a thread, over the plan's 64");
  EXPECT_EQ(found[1].message, "k for sm_90a: 8 bytes of register spills, over the plan's 0");
  EXPECT_EQ(found[2].message, "k for sm_90a: 16 bytes of local memory a thread, over the plan's 0");
  EXPECT_EQ(found[3].message,
            "k for sm_90a: 1201 bytes of static shared memory, over the plan's 1200");
  for (const Diagnostic& diagnostic : found) {
    EXPECT_EQ(diagnostic.code, ErrorCode::kToolchain);
    EXPECT_FALSE(diagnostic.note.empty());
  }
}

}  // namespace
}  // namespace afdep::compile
