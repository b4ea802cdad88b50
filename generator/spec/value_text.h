// The YAML text of a field's value, as the reader takes it back.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/names.h"
#include "generator/spec/spec.h"

namespace afdep::spec {

std::string value_text(int value);
std::string value_text(bool value);
// Plain where no YAML reader could take it for another type, else in double quotes.
std::string value_text(const std::string& value);
std::string value_text(const std::vector<int>& value);
std::string value_text(const std::vector<Arch>& value);
std::string value_text(const std::map<int, Protocol>& value);
// A number for both roles, or {attention: .., ffn: ..}.
std::string value_text(const NumSms& value);
// These two are block sequences, one item a line: "\n    - ...".
std::string value_text(const std::vector<Domain>& value);
std::string value_text(const std::vector<std::vector<int>>& value);

template <typename E>
  requires std::is_enum_v<E>
std::string value_text(E value) {
  return std::string(to_name(value));
}

}  // namespace afdep::spec
