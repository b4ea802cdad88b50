// Every golden source compiles for every arch, without a remark, a spill or local memory.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "generator/compile/compile.h"

namespace afdep::compile {
namespace {

namespace fs = std::filesystem;

// The name in front of the kernel's arguments.
std::string symbol_of(const std::string& text) {
  const std::size_t end = text.find("(const __grid_constant__");
  if (end == std::string::npos) return {};
  const std::size_t before = text.find_last_of(" \n", end);
  return text.substr(before + 1, end - before - 1);
}

// The bundles below tests/golden; each is a test of its own, so that they are compiled side by
// side.
std::vector<std::string> bundles() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator("tests/golden")) {
    if (fs::is_directory(entry.path() / "src")) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

class CompileGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(CompileGolden, EverySourceCompilesForEveryArch) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::directory_iterator(fs::path("tests/golden") / GetParam() / "src")) {
    if (entry.path().extension() == ".cu") sources.push_back(entry.path());
  }
  ASSERT_FALSE(sources.empty());
  std::ranges::sort(sources);
  for (const fs::path& path : sources) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (const std::string_view arch : supported_arches()) {
      const auto module = compile({symbol_of(text), path.filename(), text}, arch, {});
      if (!module.ok()) {
        ADD_FAILURE() << path << "\n" << to_string(module.diagnostics());
        continue;
      }
      // The plan's own ceiling on registers is checked where the plan is known: generate().
      for (const Diagnostic& found :
           check_ceilings(*module, {.registers = 255, .shared_bytes = 0})) {
        ADD_FAILURE() << path << ": " << found.message;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CompileGolden, ::testing::ValuesIn(bundles()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace afdep::compile
