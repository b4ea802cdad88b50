#include "generator/compile/compile.h"

#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "generator/compile/cubin.h"

namespace afdep::compile {
namespace {

const CompileOptions kNoHeaders = {.headers = {}};

KernelSource kernel(std::string text) { return {"k", "k.cu", std::move(text)}; }

const KernelSource kTrivial = kernel(
    "extern \"C\" __global__ void __launch_bounds__(128, 1) k(int* p) {\n"
    "  p[threadIdx.x] = 7;\n"
    "}\n");

class Compile : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Arches, Compile, ::testing::Values("sm_90a", "sm_100a"),
                         [](const auto& instance) { return instance.param; });

TEST_P(Compile, ATrivialKernel) {
  const auto module = compile(kTrivial, GetParam(), kNoHeaders);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
  EXPECT_EQ(module->symbol, "k");
  EXPECT_EQ(module->arch, GetParam());
  EXPECT_EQ(module->log, "");
  EXPECT_GT(module->registers, 0);
  EXPECT_LE(module->registers, 32);
  EXPECT_EQ(module->spill_bytes, 0);
  EXPECT_EQ(module->local_bytes, 0);
  EXPECT_EQ(module->shared_bytes, 0);
  EXPECT_EQ(check_ceilings(*module, {.registers = 32, .shared_bytes = 0}), Diagnostics{});
}

TEST_P(Compile, GivesTheSameBytesTwice) {
  const auto one = compile(kTrivial, GetParam(), kNoHeaders);
  const auto two = compile(kTrivial, GetParam(), kNoHeaders);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, *two);
}

TEST_P(Compile, ReadsBackStaticSharedMemory) {
  const auto module = compile(kernel("extern \"C\" __global__ void k(int* p) {\n"
                                     "  __shared__ int s[300];\n"
                                     "  s[threadIdx.x] = p[threadIdx.x];\n"
                                     "  __syncthreads();\n"
                                     "  p[threadIdx.x] = s[127 - threadIdx.x];\n"
                                     "}\n"),
                              GetParam(), kNoHeaders);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
  EXPECT_EQ(module->shared_bytes, 1200);
}

TEST_P(Compile, DynamicSharedMemoryIsNotCounted) {
  const auto module = compile(kernel("extern __shared__ int s[];\n"
                                     "extern \"C\" __global__ void k(int* p) {\n"
                                     "  s[threadIdx.x] = p[threadIdx.x];\n"
                                     "  __syncthreads();\n"
                                     "  p[threadIdx.x] = s[127 - threadIdx.x];\n"
                                     "}\n"),
                              GetParam(), kNoHeaders);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
  EXPECT_EQ(module->shared_bytes, 0);
}

// An array that is indexed at run time lives in local memory: 256 x 4 bytes.
TEST_P(Compile, ReadsBackLocalMemory) {
  const auto module = compile(kernel("extern \"C\" __global__ void k(int* p) {\n"
                                     "  int a[256];\n"
                                     "  for (int i = 0; i < 256; ++i) a[i] = p[i];\n"
                                     "  p[0] = a[p[256] & 255] + a[p[257] & 255];\n"
                                     "}\n"),
                              GetParam(), kNoHeaders);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
  EXPECT_EQ(module->local_bytes, 1024);
  EXPECT_EQ(module->spill_bytes, 0);
}

// 64 sums live at once and a cap of 32 registers: at least half of them spill.
TEST_P(Compile, ReadsBackSpillsAndTheRegisterCap) {
  const auto module =
      compile(kernel("extern \"C\" __global__ void __maxnreg__(32) k(float* p) {\n"
                     "  float a[64];\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < 64; ++i) a[i] = p[i * 32];\n"
                     "  for (int r = 0; r < 100; ++r) {\n"
                     "#pragma unroll\n"
                     "    for (int i = 0; i < 64; ++i) a[i] = a[i] * a[(i + 7) % 64] + 1.0f;\n"
                     "  }\n"
                     "#pragma unroll\n"
                     "  for (int i = 0; i < 64; ++i) p[i * 32] = a[i];\n"
                     "}\n"),
              GetParam(), kNoHeaders);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
  EXPECT_EQ(module->registers, 32);
  EXPECT_GE(module->spill_bytes, 2 * 4 * 32);
  EXPECT_GE(module->local_bytes, 4 * 32);
  EXPECT_EQ(check_ceilings(*module, {.registers = 32, .shared_bytes = 0}).size(), 2u);
}

TEST_P(Compile, TakesHeadersFromMemory) {
  const CompileOptions options = {
      .headers = {{"afdep/a.h", "#include \"afdep/b.h\"\ninline constexpr int kA = kB;\n"},
                  {"afdep/b.h", "#pragma once\ninline constexpr int kB = 3;\n"}}};
  const auto module = compile(
      kernel("#include \"afdep/a.h\"\nextern \"C\" __global__ void k(int* p) { *p = kA; }\n"),
      GetParam(), options);
  ASSERT_TRUE(module.ok()) << to_string(module.diagnostics());
}

// Every built-in device header compiles by itself and without a remark.
TEST_P(Compile, EachDeviceHeaderStandsAlone) {
  ASSERT_FALSE(cuda_headers().empty());
  for (const Header& header : cuda_headers()) {
    const auto module =
        compile(kernel("#include \"" + header.name + "\"\nextern \"C\" __global__ void k() {}\n"),
                GetParam(), {});
    EXPECT_TRUE(module.ok()) << header.name << "\n" << to_string(module.diagnostics());
  }
}

std::string failure_of(const KernelSource& source, const std::string& arch = "sm_90a") {
  const auto module = compile(source, arch, kNoHeaders);
  if (module.ok()) return "compiled";
  EXPECT_EQ(module.diagnostics().size(), 1u);
  return to_string(module.diagnostics()[0]);
}

TEST(CompileFailure, NamesFileAndLineOfAnError) {
  const std::string failure =
      failure_of(kernel("extern \"C\" __global__ void k() {\n  x = 1;\n}\n"));
  EXPECT_NE(failure.find("error[E805]: k.cu for sm_90a: NVRTC_ERROR_COMPILATION"),
            std::string::npos)
      << failure;
  EXPECT_NE(failure.find("k.cu(2): error: identifier \"x\" is undefined"), std::string::npos)
      << failure;
}

TEST(CompileFailure, AWarningIsAFailure) {
  const std::string failure =
      failure_of(kernel("extern \"C\" __global__ void k() {\n  int unused = 1;\n}\n"));
  EXPECT_NE(failure.find("NVRTC remarks"), std::string::npos) << failure;
  EXPECT_NE(failure.find("k.cu(2): warning"), std::string::npos) << failure;
}

TEST(CompileFailure, TheSourceMustHoldExactlyItsKernel) {
  EXPECT_NE(failure_of(kernel("extern \"C\" __global__ void other() {}\n"))
                .find("holds the kernels [other], not exactly k"),
            std::string::npos);
  EXPECT_NE(failure_of(kernel("__device__ int x;\n")).find("holds the kernels [], not exactly k"),
            std::string::npos);
}

TEST(CompileFailure, AnUnknownArchIsRefusedByItsOwnCode) {
  EXPECT_EQ(failure_of(kTrivial, "sm_80"),
            "error[E402]: arch sm_80 is not supported\n  note: the arches are sm_90a, sm_100a");
}

TEST(CompileThreads, MayCompileAtOnce) {
  std::vector<std::thread> threads;
  std::vector<CompiledModule> modules(4);
  for (std::size_t i = 0; i < modules.size(); ++i) {
    threads.emplace_back([&modules, i] {
      auto module = compile(kTrivial, i % 2 == 0 ? "sm_90a" : "sm_100a", kNoHeaders);
      if (module.ok()) modules[i] = *std::move(module);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(modules[0].image.empty());
  EXPECT_EQ(modules[0], modules[2]);
  EXPECT_EQ(modules[1], modules[3]);
  EXPECT_NE(modules[0], modules[1]);
}

}  // namespace
}  // namespace afdep::compile
