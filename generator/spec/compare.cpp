#include "generator/spec/compare.h"

#include <map>

#include <fmt/format.h>

#include "generator/spec/keys.h"
#include "generator/spec/resolve.h"
#include "generator/spec/value_text.h"

namespace afdep::spec {

std::vector<std::pair<std::string, std::string>> written_values(const Spec& spec) {
  std::vector<std::pair<std::string, std::string>> values;
  const auto add = [&](const Key& key, const auto& field, const auto&... more) {
    using FieldType = std::decay_t<decltype(field)>;
    if constexpr (sizeof...(more) > 0) {
      values.emplace_back(key.path, value_text(field.value));
      (values.emplace_back(fmt::format("{}{{}}", key.path), value_text(more.value)), ...);
    } else if constexpr (std::is_same_v<FieldType, Field<std::map<std::string, bool>>>) {
      for (const std::string_view name : ablation_names()) {
        values.emplace_back(fmt::format("{}.{}", key.path, name), value_text(ablated(spec, name)));
      }
    } else {
      values.emplace_back(key.path, value_text(field.value));
    }
  };
  visit_keys(spec, add);
  return values;
}

bool same_values(const Spec& a, const Spec& b) { return written_values(a) == written_values(b); }

}  // namespace afdep::spec
