#include "tests/lint/lint.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace afdep::lint {
namespace {

using Strings = std::vector<std::string>;

// A stand-in for the emulator's headers, so that these tests do not move with the real ones.
const std::vector<File> kHeaders = {{"/device/emulator/afdep/x.cuh",
                                     "#pragma once\n"
                                     "#define __global__\n"
                                     "#define __launch_bounds__(...)\n"
                                     "#define __grid_constant__\n"
                                     "#define AFDEP_PAUSE asm volatile(\"pause\")\n"
                                     "#define AFDEP_LOAD(p) __atomic_load_n(p, 0)\n"
                                     "namespace afdep {\n"
                                     "constexpr int kNotUsedInAHeader = 1;\n"
                                     "struct Args { int tokens; int* p; };\n"
                                     "inline int thread() { if (true) { return 1; } return 0; }\n"
                                     "template <int n> inline void send(int* p) { *p = n; }\n"
                                     "}\n"}};

// "line:column message" for a kernel with this body, whose first line is line 1, after these
// declarations.
Strings findings_in(const std::string& body, const std::string& before = "") {
  const std::string source = "#include \"afdep/x.cuh\"\n" + before +
                             "extern \"C\" __global__ void __launch_bounds__(32, 1) k(const "
                             "__grid_constant__ afdep::Args args) {\n" +
                             body + "}\n";
  const int first = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 2;
  Strings all;
  for (const Finding& finding : lint_emitted("k.cu", source, kHeaders)) {
    EXPECT_EQ(finding.place.file, "k.cu");
    all.push_back(std::to_string(finding.place.line - first) + ":" +
                  std::to_string(finding.place.column) + " " + finding.message);
  }
  return all;
}

TEST(Lint, AcceptsACleanKernel) {
  EXPECT_EQ(
      findings_in("const int thread = afdep::thread();\n"
                  "if (thread >= args.tokens) return;\n"
                  "#pragma unroll\n"
                  "for (int i = 0; i < cfg::kRows; ++i) afdep::send<cfg::kBytes>(args.p + i);\n",
                  "namespace cfg {\nconstexpr int kRows = 2;\nconstexpr int kBytes = 16;\n}\n"),
      Strings{});
}

TEST(Lint, FindsConditionsThatFold) {
  const std::string constants = "constexpr bool kOn = true;\nconstexpr int kN = 3;\n";
  EXPECT_EQ(findings_in("if (kOn) args.p[0] = kN;\n", constants),
            Strings{"1:5 condition of if is always true"});
  EXPECT_EQ(findings_in("if constexpr (kN > 2) args.p[0] = kOn;\n", constants),
            Strings{"1:15 condition of if constexpr is always true"});
  EXPECT_EQ(findings_in("while (kN < 2) args.p[0] = kOn;\n", constants),
            Strings{"1:8 condition of while is always false"});
  EXPECT_EQ(findings_in("do { args.p[0] = kOn + kN; } while (false);\n", constants),
            Strings{"1:37 condition of do is always false"});
  EXPECT_EQ(findings_in("for (int i = 0; kOn; ++i) args.p[i] = kN;\n", constants),
            Strings{"1:17 condition of for is always true"});
  EXPECT_EQ(findings_in("args.p[0] = kOn ? args.p[1] : kN;\n", constants),
            Strings{"1:13 condition of ?: is always true"});
  EXPECT_EQ(findings_in("switch (kN) { case 3: args.p[0] = kOn; }\n", constants),
            Strings{"1:9 condition of switch is always 3"});
}

TEST(Lint, FindsOperandsThatFold) {
  const std::string constant = "constexpr bool kOn = true;\n";
  EXPECT_EQ(findings_in("if (kOn && args.tokens > 1) args.p[0] = 1;\n", constant),
            Strings{"1:5 condition of operand of && is always true"});
  EXPECT_EQ(findings_in("if (args.tokens > 1 || kOn) args.p[0] = 1;\n", constant),
            (Strings{"1:5 condition of if is always true",
                     "1:24 condition of operand of || is always true"}));
  EXPECT_EQ(findings_in("const int two = 2;\nconst bool b = args.tokens > 1 && two == 2;\n"
                        "args.p[0] = b;\n"),
            Strings{"2:35 condition of operand of && is always true"});
}

TEST(Lint, FindsConditionsInsideLambdas) {
  EXPECT_EQ(findings_in("const auto f = [&](int i) { if (sizeof(int) == 4) args.p[i] = 1; };\n"
                        "f(0);\n"),
            Strings{"1:33 condition of if is always true"});
}

TEST(Lint, FindsUnusedConstants) {
  EXPECT_EQ(findings_in("args.p[0] = 1;\n", "namespace cfg {\nconstexpr int kUnused = 1;\n}\n"),
            Strings{"-2:15 unused constant 'kUnused'"});
  EXPECT_EQ(findings_in("args.p[0] = kOuter;\n",
                        "constexpr int kInner = 1;\nconstexpr int kOuter = kInner + 1;\n"),
            Strings{});
}

TEST(Lint, FindsInlineAssembly) {
  const std::string message = "inline assembly; it belongs into templates/device/cuda";
  EXPECT_EQ(findings_in("asm volatile(\"nop\");\nargs.p[0] = 1;\n"), Strings{"1:1 " + message});
  EXPECT_EQ(findings_in("__asm__(\"nop\");\nargs.p[0] = 1;\n"), Strings{"1:1 " + message});
  EXPECT_EQ(findings_in("args.p[0] = 1;\n", "asm(\"nop\");\n"), Strings{"-1:1 " + message});
  EXPECT_EQ(findings_in("AFDEP_PAUSE;\nargs.p[0] = 1;\n"),
            Strings{"1:1 inline assembly from a macro; it belongs into templates/device/cuda"});
}

TEST(Lint, FindsRawAtomics) {
  EXPECT_EQ(
      findings_in("__atomic_store_n(args.p, 1, __ATOMIC_RELAXED);\n"),
      (Strings{"1:1 raw atomic '__atomic_store_n'; it belongs into templates/device/cuda",
               "1:29 reserved name '__ATOMIC_RELAXED'; it belongs into templates/device/cuda"}));
  EXPECT_EQ(findings_in("args.p[0] = AFDEP_LOAD(args.p);\n"),
            Strings{"1:13 raw atomic from a macro; it belongs into templates/device/cuda"});
  EXPECT_EQ(findings_in("atomicAdd(args.p, 1);\n"),
            (Strings{"1:1 clang: use of undeclared identifier 'atomicAdd'",
                     "1:1 raw atomic 'atomicAdd'; it belongs into templates/device/cuda"}));
}

TEST(Lint, FindsCudaBuiltIns) {
  for (const std::string name : {"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"}) {
    const Strings found = findings_in("args.p[0] = " + name + ";\n");
    ASSERT_EQ(found.size(), 2u) << name;
    EXPECT_EQ(found[0], "1:13 CUDA built-in '" + name + "'; it belongs into templates/device/cuda");
  }
  for (const std::string name :
       {"__syncthreads", "__shfl_sync", "__ballot_sync", "__popc", "__builtin_popcount"}) {
    const Strings found = findings_in(name + "(args.p[0]);\n");
    ASSERT_FALSE(found.empty()) << name;
    EXPECT_NE(found.back().find("reserved name '" + name + "'"), std::string::npos) << found.back();
  }
}

TEST(Lint, FindsPreprocessorDirectives) {
  EXPECT_EQ(findings_in("#if 1\nargs.p[0] = 1;\n#endif\n"),
            (Strings{"1:2 preprocessor directive #if", "3:2 preprocessor directive #endif"}));
  EXPECT_EQ(findings_in("args.p[0] = N;\n", "# define N 1\n"),
            Strings{"-1:3 preprocessor directive #define"});
}

TEST(Lint, WordsInCommentsAndStringsAreFree) {
  EXPECT_EQ(
      findings_in("// asm, threadIdx, atomicAdd and #if\nargs.p[0] = 1;  /* __syncthreads */\n"),
      Strings{});
}

TEST(Lint, PassesOnWhatClangWarnsOf) {
  EXPECT_EQ(findings_in("int unused = args.tokens;\n"),
            Strings{"1:5 clang: unused variable 'unused'"});
}

}  // namespace
}  // namespace afdep::lint
