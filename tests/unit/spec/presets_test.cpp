#include "generator/spec/presets.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>

#include "generator/spec/reader.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

// The numbers of the models' published configurations.
struct Model {
  const char* name;
  int hidden, experts, top_k, shared;
};
constexpr Model kModels[] = {
    {"deepseek-v3", 7168, 256, 8, 1},
    {"deepseek-r1", 7168, 256, 8, 1},
    {"deepseek-v3.2", 7168, 256, 8, 1},
    {"deepseek-v2-lite", 2048, 64, 6, 2},
    {"deepseek-v4-flash", 4096, 256, 6, 1},
    {"deepseek-v4-pro", 7168, 384, 6, 1},
    {"kimi-k2", 7168, 384, 8, 1},
    {"qwen3-235b-a22b", 4096, 128, 8, 0},
    {"qwen3-30b-a3b", 2048, 128, 8, 0},
    {"qwen3-coder-480b", 6144, 160, 8, 0},
    {"qwen3-next-80b", 2048, 512, 10, 1},
    {"glm-4.5", 5120, 160, 8, 1},
    {"glm-4.5-air", 4096, 128, 8, 1},
    {"minimax-m2.5", 3072, 256, 8, 0},
    {"step-3", 7168, 48, 3, 1},
    {"gpt-oss-120b", 2880, 128, 4, 0},
    {"gpt-oss-20b", 2880, 32, 4, 0},
    {"llama-4-maverick", 5120, 128, 1, 1},
    {"llama-4-scout", 5120, 16, 1, 1},
    {"mixtral-8x7b", 4096, 8, 2, 0},
};

TEST(Presets, HoldTheModelsNumbers) {
  EXPECT_EQ(presets().size(), std::size(kModels));
  for (const Model& model : kModels) {
    const std::optional<Preset> preset = find_preset(model.name);
    ASSERT_TRUE(preset.has_value()) << model.name;
    EXPECT_EQ(preset->hidden_size, model.hidden) << model.name;
    EXPECT_EQ(preset->num_experts, model.experts) << model.name;
    EXPECT_EQ(preset->top_k, model.top_k) << model.name;
    EXPECT_EQ(preset->shared_experts, model.shared) << model.name;
  }
}

TEST(Presets, StandInTheDocumentation) {
  std::set<std::string> rows;
  std::istringstream page(file_text("docs/spec.md"));
  for (std::string line; std::getline(page, line);) rows.insert(line);
  for (const Model& model : kModels) {
    std::ostringstream row;
    row << "| `" << model.name << "` | " << model.hidden << " | " << model.experts << " | "
        << model.top_k << " | " << model.shared << " |";
    EXPECT_TRUE(rows.contains(row.str())) << row.str();
  }
}

TEST(Presets, AreOverriddenByGivenKeys) {
  const Result<Spec> spec = parse(
      "schema_version: 1\nname: a\nmodel: {preset: deepseek-v3, num_experts: 64}\n"
      "topology: {ratio: 1A1F}\ncapacity: {tokens_per_rank: 1}\nshared_experts: {count: 0}\n",
      "f.yaml");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->model.hidden_size.value, 7168);
  EXPECT_FALSE(spec->model.hidden_size.given);
  EXPECT_EQ(spec->model.hidden_size.place, (Place{"f.yaml", 3, 9})) << "the preset's key";
  EXPECT_EQ(spec->model.num_experts.value, 64);
  EXPECT_TRUE(spec->model.num_experts.given);
  EXPECT_EQ(spec->model.top_k.value, 8);
  EXPECT_EQ(spec->shared_experts_count.value, 0);
  EXPECT_EQ(spec->shared_experts_mode.value, SharedMode::kNone);
}

}  // namespace
}  // namespace afdep::spec
