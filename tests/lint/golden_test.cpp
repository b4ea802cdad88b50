// Every golden source passes the lint.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "generator/emit/hygiene.h"
#include "tests/lint/lint.h"

namespace afdep::lint {
namespace {

namespace fs = std::filesystem;

TEST(LintGolden, EverySourceIsClean) {
  std::vector<fs::path> sources;
  for (const auto& entry : fs::recursive_directory_iterator("tests/golden")) {
    if (entry.path().extension() == ".cu") sources.push_back(entry.path());
  }
  // tests/golden/golden_test.cpp fails where a golden lacks a source, so this hides nothing.
  if (sources.empty()) GTEST_SKIP() << "no emitted source below tests/golden";
  std::ranges::sort(sources);
  const std::vector<File> headers = device_headers();
  for (const fs::path& path : sources) {
    std::ifstream file(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (const Diagnostic& found : emit::check_emitted(text, path.string())) {
      ADD_FAILURE() << to_string(found);
    }
    for (const Finding& found : lint_emitted(path.string(), text, headers)) {
      ADD_FAILURE() << to_string(found);
    }
  }
}

}  // namespace
}  // namespace afdep::lint
