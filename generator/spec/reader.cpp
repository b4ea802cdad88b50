#include "generator/spec/reader.h"

#include <utility>

#include "generator/spec/decode.h"
#include "generator/spec/defaults.h"
#include "generator/spec/origin.h"
#include "generator/spec/read_spec.h"
#include "generator/spec/sink.h"
#include "generator/spec/source_text.h"
#include "generator/spec/supported.h"
#include "generator/spec/tree.h"
#include "generator/spec/validate.h"

namespace afdep::spec {

Result<TextTree> read_text_tree(std::string_view text, const std::string& file) {
  AFDEP_RETURN_IF_FAILED(check_text(text, file));
  Sink sink;
  std::optional<Node> root = read_tree(without_byte_order_mark(text), file, sink);
  if (!root) return Failure(sink.take());
  return TextTree{std::move(*root), std::move(sink)};
}

Result<Spec> read_spec(TextTree tree, const std::string& file) {
  Sink& sink = tree.sink;
  Spec spec = default_spec();
  Origin origin(file);
  decode(tree.root, file, spec, origin, sink);
  fill_dependent_defaults(spec);
  // A preset's number that breaks a rule is reported at the preset.
  for (const auto& [path, field] : {std::pair{"model.hidden_size", &spec.model.hidden_size},
                                    std::pair{"model.num_experts", &spec.model.num_experts},
                                    std::pair{"model.top_k", &spec.model.top_k}}) {
    if (!field->given && field->place.line > 0) {
      origin.set_place(path, origin.place("model.preset"));
    }
  }
  if (tree.root.kind == Node::Kind::kMapping) validate(spec, origin, sink);
  if (!sink.empty()) return Failure(sink.take());
  if (Diagnostics refused = unsupported(spec); !refused.empty()) return Failure(std::move(refused));
  return spec;
}

Result<Spec> parse(std::string_view text, std::string file_name) {
  Result<TextTree> tree = read_text_tree(text, file_name);
  if (!tree) return tree.failure();
  return read_spec(std::move(*tree), file_name);
}

Result<Spec> load(const std::filesystem::path& path) {
  Result<std::string> text = read_text(path);
  if (!text) return text.failure();
  return parse(*text, path.string());
}

}  // namespace afdep::spec
