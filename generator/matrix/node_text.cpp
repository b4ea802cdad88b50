#include "generator/matrix/node_text.h"

#include <fmt/format.h>

namespace afdep::matrix {
namespace {

std::string in_quotes(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

// A word that block style may leave plain need not be plain inside brackets.
std::string scalar_text(const spec::Node& node) {
  const bool plain = node.plain && node.text.find_first_of(",[]{}#:\n") == std::string::npos;
  return plain ? node.text : in_quotes(node.text);
}

}  // namespace

std::string to_text(const spec::Node& node) {
  using Kind = spec::Node::Kind;
  std::string text;
  switch (node.kind) {
    case Kind::kNull:
    case Kind::kRefused:
      return {};
    case Kind::kScalar:
      return scalar_text(node);
    case Kind::kSequence:
      for (const spec::Node& item : node.items) {
        text += (text.empty() ? "" : ", ") + to_text(item);
      }
      return "[" + text + "]";
    case Kind::kMapping:
      for (const spec::Entry& entry : node.entries) {
        spec::Node key;
        key.kind = Kind::kScalar;
        key.plain = entry.key.find(' ') == std::string::npos;
        key.text = entry.key;
        text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", scalar_text(key),
                            to_text(entry.value));
      }
      return "{" + text + "}";
  }
  return {};
}

}  // namespace afdep::matrix
