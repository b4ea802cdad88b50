#include "tests/lint/declarations.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace afdep::lint {
namespace {

using Strings = std::vector<std::string>;

const std::string kCuda =
    "#pragma once\n#include \"afdep/types.h\"\n"
    "#define AFDEP_DEVICE __device__ __forceinline__\n"
    "namespace afdep {\n"
    "constexpr int kPolls = 256;\n"
    "AFDEP_DEVICE int lane() { return static_cast<int>(threadIdx.x & 31); }\n"
    "template <typename T> AFDEP_DEVICE T& shared() { extern __shared__ T all[]; return all[0]; }\n"
    "AFDEP_DEVICE void store(Pair* at, const Pair& pair) {\n"
    "  asm volatile(\"st.v2 [%0], {%1, %2};\" ::\"l\"(at), \"r\"(pair.a), \"r\"(pair.b));\n"
    "}\n"
    "namespace detail { AFDEP_DEVICE int only_here() { return 1; } }\n"
    "}\n";
const std::string kEmulator =
    "#pragma once\n#include \"afdep/types.h\"\n"
    "#define AFDEP_DEVICE inline\n"
    "extern \"C\" int hook();\n"
    "namespace afdep {\n"
    "constexpr int kPolls = 1;\n"
    "AFDEP_DEVICE int lane() { return hook(); }\n"
    "template <typename T> AFDEP_DEVICE T& shared() { static T all; return all; }\n"
    "AFDEP_DEVICE void store(Pair* to, const Pair& pair) { *to = pair; }\n"
    "}\n";

std::vector<File> sides(const std::string& cuda, const std::string& emulator) {
  return {{"/device/common/afdep/types.h",
           "#pragma once\nnamespace afdep { struct Pair { int a; int b; }; }\n"},
          {"/device/cuda/afdep/x.cuh", cuda},
          {"/device/emulator/afdep/x.cuh", emulator}};
}

std::string replace(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Declarations, AcceptsTheSameNamesWithOtherBodies) {
  EXPECT_EQ(declaration_differences(sides(kCuda, kEmulator)), Strings{});
}

TEST(Declarations, FindsANameThatOneSideLacks) {
  EXPECT_EQ(declaration_differences(
                sides(kCuda, replace(kEmulator, "AFDEP_DEVICE int lane() { return hook(); }", ""))),
            Strings{"only in device/cuda: afdep/x.cuh: int afdep::lane()"});
}

TEST(Declarations, FindsAnotherSignature) {
  EXPECT_EQ(declaration_differences(
                sides(kCuda, replace(kEmulator, "store(Pair* to", "store(const Pair* to"))),
            (Strings{"only in device/cuda: afdep/x.cuh: void afdep::store(afdep::Pair *, const "
                     "afdep::Pair &)",
                     "only in device/emulator: afdep/x.cuh: void afdep::store(const afdep::Pair *, "
                     "const afdep::Pair &)"}));
  EXPECT_EQ(declaration_differences(sides(kCuda, replace(kEmulator, "int lane()", "long lane()"))),
            (Strings{"only in device/cuda: afdep/x.cuh: int afdep::lane()",
                     "only in device/emulator: afdep/x.cuh: long afdep::lane()"}));
}

TEST(Declarations, FindsOtherTemplateParametersAndConstants) {
  EXPECT_EQ(declaration_differences(sides(kCuda, replace(kEmulator, "template <typename T>",
                                                         "template <typename T, int n>")))
                .size(),
            2u);
  EXPECT_EQ(declaration_differences(
                sides(kCuda, replace(kEmulator, "constexpr int kPolls", "constexpr long kPolls"))),
            (Strings{"only in device/cuda: afdep/x.cuh: const int afdep::kPolls",
                     "only in device/emulator: afdep/x.cuh: const long afdep::kPolls"}));
}

TEST(Declarations, ComparesRecordsMemberByMember) {
  const std::string one = "namespace afdep { struct S { int a; int f() const; }; }\n";
  const std::string two = "namespace afdep { struct S { int a; int f(); }; }\n";
  EXPECT_EQ(declaration_differences(sides(one, one)), Strings{});
  EXPECT_EQ(declaration_differences(sides(one, two)),
            (Strings{"only in device/cuda: afdep/x.cuh: struct afdep::S { int afdep::S::a; int "
                     "afdep::S::f() const; }",
                     "only in device/emulator: afdep/x.cuh: struct afdep::S { int afdep::S::a; int "
                     "afdep::S::f(); }"}));
}

TEST(Declarations, FindsAHeaderThatOneSideLacks) {
  std::vector<File> files = sides(kCuda, kEmulator);
  files.push_back({"/device/cuda/afdep/y.cuh", "#pragma once\n"});
  EXPECT_EQ(declaration_differences(files), Strings{"only in device/cuda: afdep/y.cuh"});
}

TEST(Declarations, AHeaderThatDoesNotParseIsADifference) {
  const Strings found = declaration_differences(sides(kCuda, kEmulator + "int x = ;\n"));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0], "device/emulator/afdep/x.cuh:11:9: clang: expected expression");
}

// So that the test below cannot pass because nothing was read.
TEST(Declarations, FindsARenamedFunctionInTheDeviceHeaders) {
  std::vector<File> headers = device_headers();
  for (File& header : headers) {
    if (header.path == "/device/emulator/afdep/thread.cuh") {
      header.text = replace(header.text, "void sync_block()", "void sync_blocks()");
    }
  }
  EXPECT_EQ(declaration_differences(headers),
            (Strings{"only in device/cuda: afdep/thread.cuh: void afdep::sync_block()",
                     "only in device/emulator: afdep/thread.cuh: void afdep::sync_blocks()"}));
}

TEST(Declarations, OfTheDeviceHeadersAgree) {
  for (const std::string& difference : declaration_differences(device_headers())) {
    ADD_FAILURE() << difference;
  }
}

}  // namespace
}  // namespace afdep::lint
