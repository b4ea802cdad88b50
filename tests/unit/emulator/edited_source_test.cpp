// An emitted kernel that somebody edited by hand to contain CUDA that the emulator does not know is
// refused with the construct and its place, whether or not a thread would get there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "runtime/emulator/compiler.h"

namespace afdep {
namespace {

constexpr const char* kKernel = "attention_collect_b1";
constexpr const char* kSymbol = "afdep_two_workers_2a2f_collect_b1";
constexpr const char* kFolder = "tests/golden/two-workers-2a2f/src/";
constexpr const char* kRemedy =
    "  note: an emitted kernel may use nothing but the device headers\n";

std::string emitted() {
  std::ifstream in(std::string(kFolder) + kKernel + ".cu", std::ios::binary);
  EXPECT_TRUE(in.is_open());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string refusal(const std::string& text) {
  const auto compiled = emulator::compile(std::string(kKernel) + ".cu", kSymbol, text);
  return compiled.ok() ? "accepted\n" : to_string(compiled.diagnostics());
}

struct Edited {
  std::string text;
  int line = 0;  // of what was put in, which begins in column 1
};

Edited before(const std::string& what, const std::string& put_in) {
  Edited edited{emitted(), 0};
  const std::size_t at = edited.text.find(what);
  EXPECT_NE(at, std::string::npos);
  edited.line =
      static_cast<int>(std::count(edited.text.begin(),
                                  edited.text.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
      1;
  edited.text.insert(at, put_in + "\n");
  return edited;
}

// A statement as the first of the kernel.
Edited with_statement(const std::string& statement) {
  return before("  const uint32_t generation", statement);
}
// A declaration in front of the kernel.
Edited with_declaration(const std::string& declaration) {
  return before("extern \"C\" __global__", declaration);
}

std::string expected(int line, int column, const std::string& message) {
  return fmt::format("{}.cu:{}:{}: error[E805]: {}\n{}", kKernel, line, column, message, kRemedy);
}

struct Raw {
  const char* name;
  const char* text;
  int column;
  const char* message;
};
void PrintTo(const Raw& raw, std::ostream* out) { *out << raw.text; }

class EditedStatement : public ::testing::TestWithParam<Raw> {};

TEST_P(EditedStatement, IsRefusedWithItsPlace) {
  const Edited edited = with_statement(GetParam().text);
  EXPECT_EQ(refusal(edited.text), expected(edited.line, GetParam().column, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, EditedStatement,
    ::testing::Values(
        Raw{"Ptx", "asm volatile(\"fence.acq_rel.sys;\" ::: \"memory\");", 1,
            "the emulator does not know inline assembly \"fence.acq_rel.sys;\""},
        Raw{"Fence", "__threadfence_system();", 1,
            "use of undeclared identifier '__threadfence_system'"},
        Raw{"Barrier", "__syncthreads();", 1, "use of undeclared identifier '__syncthreads'"},
        Raw{"Atomic", "atomicAdd(args.common.workspace, 1u);", 1,
            "use of undeclared identifier 'atomicAdd'"},
        Raw{"BuiltinVariable", "if (threadIdx.x == 0) return;", 5,
            "use of undeclared identifier 'threadIdx'"},
        Raw{"CompilersAtomic", "__atomic_store_n(args.common.window, 1, __ATOMIC_RELEASE);", 1,
            "the emulator does not know an atomic operation outside the device headers"},
        Raw{"CompilersFence", "__atomic_thread_fence(__ATOMIC_SEQ_CST);", 1,
            "the emulator does not know an atomic operation outside the device headers"},
        Raw{"CompilersBuiltin", "__builtin_prefetch(args.common.window);", 1,
            "the emulator does not know the built-in llvm.prefetch.p0"},
        Raw{"Pointer", "reinterpret_cast<void (*)()>(args.common.window)();", 1,
            "the emulator does not know a call through a pointer"},
        Raw{"SharedArray", "__shared__ uint32_t stage[32]; stage[0] = 1;", 21,
            "the emulator does not know __shared__ of stage"},
        Raw{"StaticArray", "static uint32_t stage[32]; stage[0] = 1;", 17,
            "the emulator does not know the variable stage, which all ranks would share"}),
    [](const auto& each) { return std::string(each.param.name); });

class EditedDeclaration : public ::testing::TestWithParam<Raw> {};

TEST_P(EditedDeclaration, IsRefusedWithItsPlace) {
  const Edited edited = with_declaration(GetParam().text);
  EXPECT_EQ(refusal(edited.text), expected(edited.line, GetParam().column, GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, EditedDeclaration,
    ::testing::Values(
        Raw{"DeviceVariable", "__device__ uint32_t counter;", 21,
            "the emulator does not know __device__ of counter"},
        Raw{"ConstantVariable", "__constant__ uint32_t table[4];", 23,
            "the emulator does not know __constant__ of table"},
        Raw{"DeviceFunction", "__device__ inline int twice(int x) { return 2 * x; }", 23,
            "the emulator does not know __device__ of twice"},
        Raw{"Variable", "uint32_t counter = 0;", 10,
            "the emulator does not know the variable counter, which all ranks would share"},
        Raw{"VariableOfANamespace", "namespace mine { uint32_t counter; }", 27,
            "the emulator does not know the variable counter, which all ranks would share"},
        Raw{"Assembly", "asm(\".global counter\");", 1,
            "the emulator does not know assembly outside functions"},
        Raw{"SystemHeader", "#include <cooperative_groups.h>", 10,
            "'cooperative_groups.h' file not found"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(EditedSource, ACallOfAnUnknownFunctionIsRefusedWhereItIsCalled) {
  Edited edited = with_statement("printf_like(1);");
  edited.text = "extern \"C\" void printf_like(int);\n" + edited.text;
  EXPECT_EQ(refusal(edited.text),
            expected(edited.line + 1, 1,
                     "the emulator does not know a call of the unknown function printf_like"));
}

TEST(EditedSource, EveryConstructIsNamedAtOnce) {
  const Edited edited = with_statement(
      "asm volatile(\"nop\" ::: \"memory\");\n"
      "__atomic_thread_fence(__ATOMIC_SEQ_CST);");
  EXPECT_EQ(
      refusal(edited.text),
      expected(edited.line, 1, "the emulator does not know inline assembly \"nop\"") +
          expected(edited.line + 1, 1,
                   "the emulator does not know an atomic operation outside the device headers"));
}

TEST(EditedSource, WhatWasEmittedIsAccepted) { EXPECT_EQ(refusal(emitted()), "accepted\n"); }

}  // namespace
}  // namespace afdep
