// The two halves of parse(), for callers that change the tree in between.
#pragma once

#include <string>
#include <string_view>

#include "generator/spec/node.h"
#include "generator/spec/sink.h"
#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::spec {

// The tree of a text and the errors so far: some (a duplicate key, say) leave the rest readable.
struct TextTree {
  Node root;
  Sink sink;
};

// Fails if there is nothing to go on with.
Result<TextTree> read_text_tree(std::string_view text, const std::string& file);

// Decodes, validates and checks what this build serves.
Result<Spec> read_spec(TextTree tree, const std::string& file);

}  // namespace afdep::spec
