// The specs that are shipped, for tests that take each. Tests run in the repository's root.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace afdep {

// Of specs/*.yaml, without folder and extension, ascending.
inline std::vector<std::string> shipped_spec_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("specs")) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

inline std::string shipped_spec_test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace afdep
