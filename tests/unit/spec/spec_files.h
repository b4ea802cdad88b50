// Spec files of the repository, for parameterised tests. Tests run in the repository's root.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace afdep::spec {

inline std::string file_text(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The .yaml files of a folder, by name.
inline std::vector<std::filesystem::path> spec_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The stem of a file as a test name: letters, digits and underscores.
inline std::string test_name(const std::filesystem::path& path) {
  std::string name = path.stem().string();
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return !(std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'); }, '_');
  return name;
}

// A valid spec, which tests change in one place.
inline constexpr const char* kMinimal =
    "schema_version: 1\n"
    "name: minimal\n"
    "model:\n"
    "  hidden_size: 256\n"
    "  num_experts: 8\n"
    "  top_k: 2\n"
    "topology:\n"
    "  ratio: \"2A2F\"\n"
    "capacity:\n"
    "  tokens_per_rank: 512\n";

}  // namespace afdep::spec
