// How the values of the spec's enumerations are written in YAML.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/spec.h"
#include "runtime/support/check.h"

namespace afdep::spec {

template <typename E>
struct Name {
  std::string_view text;
  E value;
};

// Every written value, in the order of the documentation; specialized for each enumeration of
// spec.h. The resolved-only Scale::kByDtype is written "by_dtype".
template <typename E>
std::span<const Name<E>> names();

template <typename E>
std::optional<E> from_name(std::string_view text) {
  for (const Name<E>& name : names<E>()) {
    if (name.text == text) return name.value;
  }
  return std::nullopt;
}

template <typename E>
std::string_view to_name(E value) {
  for (const Name<E>& name : names<E>()) {
    if (name.value == value) return name.text;
  }
  AFDEP_CHECK(false,
              "an enumeration value without a name: " + std::to_string(static_cast<int>(value)));
  return {};
}

// "a, b, c".
std::string join(std::span<const std::string_view> words);

template <typename E>
std::vector<std::string_view> name_texts() {
  std::vector<std::string_view> texts;
  for (const Name<E>& name : names<E>()) texts.push_back(name.text);
  return texts;
}

// The keys of the section `ablation`, in the order of the documentation.
std::span<const std::string_view> ablation_names();

}  // namespace afdep::spec
