// In-process Clang: every diagnostic is an error with its place; equal texts are compiled once.
#include <cstdint>

#include "runtime/emulator/compiler.h"
#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

Diagnostics diagnostics(const std::string& text) {
  const auto result = emulator::compile("dispatch_b8.cu", "kernel", text);
  return result.ok() ? Diagnostics{} : result.diagnostics();
}

constexpr const char* kGood = R"(#include "afdep/thread.cuh"
struct Args { int x; };
extern "C" __global__ void __launch_bounds__(32, 1) kernel(const __grid_constant__ Args args) {
  if (args.x == 1) afdep::sync_block();
}
)";

TEST(EmulatorCompiler, GoodTextHasNoDiagnostics) { EXPECT_TRUE(diagnostics(kGood).empty()); }

TEST(EmulatorCompiler, ErrorsAndWarningsNameFileAndLine) {
  const Diagnostics found = diagnostics(R"(#include "afdep/thread.cuh"
struct Args { int x; };
extern "C" __global__ void __launch_bounds__(32, 1) kernel(const __grid_constant__ Args args) {
  undeclared(args.x);
  args.y = 1;
}
)");
  ASSERT_EQ(found.size(), 2u) << to_string(found);
  EXPECT_EQ(to_string(found[0]),
            "dispatch_b8.cu:4:3: error[E805]: use of undeclared identifier 'undeclared'\n"
            "  note: an emitted kernel may use nothing but the device headers");
  EXPECT_EQ(to_string(found[1]), "dispatch_b8.cu:5:8: error[E805]: no member named 'y' in 'Args'");
}

TEST(EmulatorCompiler, WarningsAreErrors) {
  const Diagnostics found = diagnostics(R"(#include "afdep/thread.cuh"
struct Args { int x; };
extern "C" __global__ void __launch_bounds__(32, 1) kernel(const __grid_constant__ Args args) {
  const int unused = 3;
  if (args.x == 1) afdep::sync_block();
}
)");
  ASSERT_EQ(found.size(), 1u) << to_string(found);
  EXPECT_EQ(to_string(found[0]), "dispatch_b8.cu:4:13: error[E805]: unused variable 'unused'");
}

TEST(EmulatorCompiler, NotesAreKept) {
  const Diagnostics found = diagnostics(R"(#include "afdep/thread.cuh"
struct Args { int x; };
void twice(int, int);
extern "C" __global__ void kernel(const __grid_constant__ Args args) { twice(args.x); }
)");
  ASSERT_EQ(found.size(), 1u) << to_string(found);
  EXPECT_EQ(found[0].message, "no matching function for call to 'twice'");
  EXPECT_EQ(found[0].note,
            "dispatch_b8.cu:3:6: candidate function not viable: requires 2 arguments, but 1 was "
            "provided");
}

TEST(EmulatorCompiler, SystemHeadersDoNotExist) {
  const Diagnostics found = diagnostics("#include <cstdint>\n");
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].message, "'cstdint' file not found");
  EXPECT_EQ(found[0].place.line, 1);
}

TEST(EmulatorCompiler, MissingSymbolIsReported) {
  const auto result = emulator::compile("dispatch_b8.cu", "other_kernel", kGood);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics()[0].message, "use of undeclared identifier 'other_kernel'");
}

TEST(EmulatorCompiler, EqualTextsAreCompiledOnce) {
  const auto first = emulator::compile("dispatch_b8.cu", "kernel", kGood);
  const auto second = emulator::compile("dispatch_b8.cu", "kernel", kGood);
  const auto other = emulator::compile("dispatch_b8.cu", "kernel", std::string(kGood) + "\n");
  EXPECT_EQ(*first, *second);
  EXPECT_NE(*first, *other);
  EXPECT_EQ((*first)->args_bytes, 4u);
}

TEST(EmulatorCompiler, BoundOfWaitsIsReadFromTheArguments) {
  const auto result = emulator::compile("bound.cu", "bound", R"(#include "afdep/abi.h"
#include "afdep/thread.cuh"
extern "C" __global__ void bound(const __grid_constant__ afdep::ReplyArgs args) {
  if (args.rows == nullptr) afdep::sync_block();
}
)");
  ASSERT_TRUE(result.ok()) << to_string(result.diagnostics());
  EXPECT_EQ((*result)->args_bytes, 48u + 8 * 64 + 8);
  std::array<std::uint64_t, 71> args{};
  args[4] = 123;  // after four pointers
  EXPECT_EQ((*result)->timeout_ns(args.data()), 123u);
}

}  // namespace
}  // namespace afdep
