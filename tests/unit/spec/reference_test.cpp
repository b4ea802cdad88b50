// What users read about keys names every key of the code.
#include <gtest/gtest.h>

#include <string>

#include "generator/spec/keys.h"
#include "generator/spec/names.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

TEST(Reference, ShowsEveryKey) {
  const std::string text = file_text("specs/reference.yaml");
  for (const Key& key : all_keys()) {
    const std::string word(last_of(key.path));
    const bool nested = !section_of(key.path).empty();
    const bool shown = text.find((nested ? "\n  " : "\n") + word + ":") != std::string::npos ||
                       text.find("\n  # " + word + ":") != std::string::npos;
    EXPECT_TRUE(shown) << key.path;
  }
  for (const std::string_view name : ablation_names()) {
    EXPECT_NE(text.find("\n  " + std::string(name) + ": false"), std::string::npos) << name;
  }
}

TEST(Documentation, HasARowForEveryKey) {
  const std::string text = file_text("docs/spec.md");
  for (const Key& key : all_keys()) {
    const std::string path = key.path == "ablation" ? "ablation.*" : std::string(key.path);
    EXPECT_NE(text.find("| `" + path + "` |"), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace afdep::spec
