#include "generator/spec/defaults.h"

#include "generator/spec/presets.h"

namespace afdep::spec {

Spec default_spec() {
  // Value-initialized fields are the defaults of all other keys: zero, empty, false, first name.
  Spec spec;
  spec.topology.scale.value = 1;
  spec.id_dtype.value = IdDtype::kInt64;
  spec.expert_alignment.value = 1;
  spec.arch.value = {Arch::kSm90a};
  spec.microbatches.value = 1;
  spec.device_timeout_ms.value = 30000;
  spec.host_timeout_ms.value = 120000;
  return spec;
}

void fill_dependent_defaults(Spec& spec) {
  if (const auto preset = find_preset(spec.model.preset.value)) {
    const auto fill = [&](Field<int>& field, int value) {
      if (!field.given) field = {value, spec.model.preset.place, false};
    };
    fill(spec.model.hidden_size, preset->hidden_size);
    fill(spec.model.num_experts, preset->num_experts);
    fill(spec.model.top_k, preset->top_k);
    fill(spec.shared_experts_count, preset->shared_experts);
  }
  if (!spec.shared_experts_mode.given) {
    // Shared experts that nothing says otherwise about stay with the attention ranks.
    spec.shared_experts_mode.value =
        spec.shared_experts_count.value > 0 ? SharedMode::kLocal : SharedMode::kNone;
  }
  if (!spec.capacity.buckets.given && spec.capacity.tokens_per_rank.value > 0) {
    spec.capacity.buckets.value = {spec.capacity.tokens_per_rank.value};
  }
}

}  // namespace afdep::spec
