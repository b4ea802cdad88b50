#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/layering/includes.h"

namespace afdep::layering {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::string read(const std::filesystem::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Layering, EveryIncludeOfTheTreeIsAllowed) {
  int files = 0;
  for (const char* top : {"generator", "runtime", "cli", "templates"}) {
    if (!std::filesystem::exists(top)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
      const std::string path = entry.path().generic_string();
      // Device headers follow the include root of the kernels, not the repository's.
      if (path.starts_with("templates/device/")) continue;
      if (!path.ends_with(".h") && !path.ends_with(".cpp")) continue;
      ++files;
      for (const std::string& offender : offenders(path, read(path))) ADD_FAILURE() << offender;
    }
  }
  EXPECT_GT(files, 10) << "the test runs in the repository's root";
}

TEST(Layering, TableHasNoCycle) { EXPECT_EQ(find_cycle(), ""); }

TEST(Layering, FolderIsTheLongestMatch) {
  EXPECT_EQ(folder_of("generator/plan/passes/windows.cpp"), "generator/plan");
  EXPECT_EQ(folder_of("generator/generate.cpp"), "generator");
  EXPECT_EQ(folder_of("runtime/exchange.h"), "runtime");
  EXPECT_EQ(folder_of("docs/x.h"), "");
}

TEST(Layering, NamesFileLineAndEdge) {
  EXPECT_THAT(offenders("generator/emit/emit.cpp",
                        "#include \"generator/emit/emit.h\"\n"
                        "\n"
                        "#include \"generator/spec/spec.h\"\n"),
              ElementsAre("generator/emit/emit.cpp:3: generator/emit must not include "
                          "generator/spec"));
  EXPECT_THAT(offenders("runtime/exchange.cpp", "  #  include \"generator/plan/plan.h\"\n"),
              ElementsAre("runtime/exchange.cpp:1: runtime must not include generator/plan"));
}

TEST(Layering, LibrariesStayInTheirFolder) {
  EXPECT_THAT(offenders("generator/compile/nvrtc_library.cpp", "#include <nvrtc.h>\n"), IsEmpty());
  EXPECT_THAT(offenders("runtime/cuda/driver.cpp", "#include <cuda.h>\n"), IsEmpty());
  EXPECT_THAT(offenders("generator/plan/plan.cpp", "#include <cuda.h>\n"),
              ElementsAre("generator/plan/plan.cpp:1: generator/plan must not see <cuda.h>"));
  EXPECT_THAT(offenders("cli/afdep_gen.cpp", "\n#include <llvm/IR/Module.h>\n"),
              ElementsAre("cli/afdep_gen.cpp:2: cli must not see <llvm/IR/Module.h>"));
}

TEST(Layering, HeavyHeadersStayOutOfHeaders) {
  EXPECT_THAT(offenders("generator/spec/reader.cpp", "#include <yaml-cpp/yaml.h>\n"), IsEmpty());
  EXPECT_THAT(offenders("generator/spec/reader.h", "#include <yaml-cpp/yaml.h>\n"),
              ElementsAre("generator/spec/reader.h:1: <yaml-cpp/yaml.h> belongs into a source "
                          "file, not a header"));
}

TEST(Layering, IncludesAreWrittenFromTheRoot) {
  EXPECT_THAT(offenders("generator/spec/reader.cpp", "#include \"reader.h\"\n"),
              ElementsAre("generator/spec/reader.cpp:1: \"reader.h\" is not a path from the "
                          "repository's root"));
}

TEST(Layering, UnknownFolderIsReported) {
  EXPECT_THAT(offenders("generator_x/y.cpp", ""),
              ElementsAre("generator_x/y.cpp:1: its folder is not in the table of layers"));
}

}  // namespace
}  // namespace afdep::layering
