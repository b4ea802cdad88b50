// YAML text to a Node tree, without what a spec refuses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/spec/node.h"
#include "generator/spec/sink.h"

namespace afdep::spec {

inline constexpr int kMaxDepth = 32;

// Reads one document. Anchors, aliases, merge keys, duplicate keys (E001) and tags (E000) are
// reported and left out of the tree; nothing is ever expanded, so the tree is never larger than the
// text. No value after E000 for a syntax error, several documents, nesting over kMaxDepth or an
// empty file. Precondition: check_text() passed.
std::optional<Node> read_tree(std::string_view text, const std::string& file, Sink& sink);

}  // namespace afdep::spec
