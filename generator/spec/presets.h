// Models that model.preset names.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace afdep::spec {

struct Preset {
  std::string_view name;  // as written in model.preset
  int hidden_size;
  int num_experts;  // routed
  int top_k;
  int shared_experts;
};

// Source: the table "Presets" of docs/spec.md, from the models' published configurations.
std::span<const Preset> presets();

std::optional<Preset> find_preset(std::string_view name);

}  // namespace afdep::spec
