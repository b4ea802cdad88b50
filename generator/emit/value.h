// What a template may be given: strings, integers, booleans and lists of records.
#pragma once

#include <concepts>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/support/check.h"

namespace afdep::emit {

struct Record;

// Implicit conversions, so that bindings read as `{"rows", 8}`. An integer outside int64 throws
// InternalError. NOLINTBEGIN(google-explicit-constructor)
struct Value {
  std::variant<std::string, std::int64_t, bool, std::vector<Record>> held;

  // Defined below: the variant's members need Record.
  Value(std::string text);
  Value(std::string_view text);
  Value(const char* text);
  Value(std::vector<Record> records);
  // A template, so that a pointer never turns into a boolean.
  template <std::same_as<bool> T>
  Value(T flag);
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T number);
};
// NOLINTEND(google-explicit-constructor)

// Names, which are [a-z_][a-z0-9_]*, to values; ordered, so that errors come in a fixed order.
struct Record {
  std::map<std::string, Value, std::less<>> fields;

  Record() = default;
  Record(std::initializer_list<std::pair<const std::string, Value>> list) : fields(list) {}

  // Throws InternalError if the name is already there: two bindings of one name are a mistake.
  void add(std::string name, Value value) {
    const bool added = fields.try_emplace(name, std::move(value)).second;
    AFDEP_CHECK(added, "template argument bound twice: " + name);
  }
};

// The arguments of one expansion.
using Arguments = Record;

inline Value::Value(std::string text) : held(std::move(text)) {}
inline Value::Value(std::string_view text) : held(std::string(text)) {}
inline Value::Value(const char* text) : held(std::string(text)) {}
inline Value::Value(std::vector<Record> records) : held(std::move(records)) {}

template <std::same_as<bool> T>
Value::Value(T flag) : held(flag) {}

template <std::integral T>
  requires(!std::same_as<T, bool>)
Value::Value(T number) : held(std::int64_t{0}) {
  AFDEP_CHECK(std::in_range<std::int64_t>(number), "template argument is outside int64");
  held = static_cast<std::int64_t>(number);
}

}  // namespace afdep::emit
