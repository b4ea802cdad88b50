#include "generator/spec/keys.h"

namespace afdep::spec {

const std::vector<Key>& all_keys() {
  static const std::vector<Key> kAll = [] {
    std::vector<Key> keys;
    const Spec spec;
    visit_keys(spec, [&](const Key& key, const auto&...) { keys.push_back(key); });
    return keys;
  }();
  return kAll;
}

std::string_view section_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view last_of(std::string_view path) { return path.substr(path.rfind('.') + 1); }

}  // namespace afdep::spec
