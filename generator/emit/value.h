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
// InternalError.
struct Value {
  std::variant<std::string, std::int64_t, bool, std::vector<Record>> held;

  Value(std::string text) : held(std::move(text)) {}         // NOLINT(google-explicit-constructor)
  Value(std::string_view text) : held(std::string(text)) {}  // NOLINT(google-explicit-constructor)
  Value(const char* text) : held(std::string(text)) {}       // NOLINT(google-explicit-constructor)
  Value(std::vector<Record> records)
      : held(std::move(records)) {}  // NOLINT(google-explicit-constructor)
  // A template, so that a pointer never turns into a boolean.
  template <std::same_as<bool> T>
  Value(T flag) : held(flag) {}  // NOLINT(google-explicit-constructor)
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T number) : held(std::int64_t{0}) {  // NOLINT(google-explicit-constructor)
    AFDEP_CHECK(std::in_range<std::int64_t>(number), "template argument is outside int64");
    held = static_cast<std::int64_t>(number);
  }
};

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

}  // namespace afdep::emit
