// The YAML tree of a spec file as written, before any key is known: text and places only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/support/diagnostic.h"

namespace afdep::spec {

struct Entry;

struct Node {
  // kRefused: an alias, tag or merge that was already reported; readers pass over it silently.
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMapping, kRefused };

  Kind kind = Kind::kNull;
  bool plain = false;  // scalar: written without quotes
  Place place;
  std::string text;            // scalar
  std::vector<Node> items;     // sequence
  std::vector<Entry> entries;  // mapping, without duplicate keys
};

struct Entry {
  std::string key;
  Place place;  // of the key
  Node value;
};

}  // namespace afdep::spec
