#include "generator/spec/presets.h"

#include <algorithm>
#include <array>

namespace afdep::spec {
namespace {

//                      name                  hidden experts top_k shared
constexpr std::array kPresets = {
    Preset{"deepseek-v3", 7168, 256, 8, 1},
    Preset{"deepseek-r1", 7168, 256, 8, 1},
    Preset{"deepseek-v3.2", 7168, 256, 8, 1},
    Preset{"deepseek-v2-lite", 2048, 64, 6, 2},
    Preset{"deepseek-v4-flash", 4096, 256, 6, 1},
    Preset{"deepseek-v4-pro", 7168, 384, 6, 1},
    Preset{"kimi-k2", 7168, 384, 8, 1},
    Preset{"qwen3-235b-a22b", 4096, 128, 8, 0},
    Preset{"qwen3-30b-a3b", 2048, 128, 8, 0},
    Preset{"qwen3-coder-480b", 6144, 160, 8, 0},
    Preset{"qwen3-next-80b", 2048, 512, 10, 1},
    Preset{"glm-4.5", 5120, 160, 8, 1},
    Preset{"glm-4.5-air", 4096, 128, 8, 1},
    Preset{"minimax-m2.5", 3072, 256, 8, 0},
    Preset{"step-3", 7168, 48, 3, 1},
    Preset{"gpt-oss-120b", 2880, 128, 4, 0},
    Preset{"gpt-oss-20b", 2880, 32, 4, 0},
    Preset{"llama-4-maverick", 5120, 128, 1, 1},
    Preset{"llama-4-scout", 5120, 16, 1, 1},
    Preset{"mixtral-8x7b", 4096, 8, 2, 0},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

std::optional<Preset> find_preset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const Preset& preset) { return preset.name == name; });
  if (found == kPresets.end()) return std::nullopt;
  return *found;
}

}  // namespace afdep::spec
