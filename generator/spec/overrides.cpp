#include "generator/spec/overrides.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "generator/spec/decode.h"
#include "generator/spec/keys.h"
#include "generator/spec/read_spec.h"
#include "generator/spec/source_text.h"
#include "generator/spec/tree.h"

namespace afdep::spec {
namespace {

bool is_key(std::string_view path) {
  // The keys whose values are mappings: their entries can be set alone.
  constexpr std::array<std::string_view, 3> kMappings = {"kernel.num_sms.", "kernel.protocol.",
                                                         "ablation."};
  const auto& keys = all_keys();
  return std::any_of(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; }) ||
         std::any_of(kMappings.begin(), kMappings.end(),
                     [&](std::string_view prefix) { return path.starts_with(prefix); });
}

// The first key of a section; nothing if `path` is no section.
std::optional<std::string_view> first_key_of(std::string_view path) {
  for (const Key& key : all_keys()) {
    if (!path.empty() && section_of(key.path) == path) return key.path;
  }
  return std::nullopt;
}

// The entry `key` of a mapping, made if it is not there.
Entry& entry_of(Node& mapping, std::string_view key, const Place& place) {
  for (Entry& entry : mapping.entries) {
    if (entry.key == key) return entry;
  }
  mapping.entries.push_back({std::string(key), place, Node{}});
  mapping.entries.back().value.place = place;
  return mapping.entries.back();
}

// Puts `value` at `path`, below mappings that are made where the file has none.
void put(Node& root, std::string_view path, Node value, const Place& place, Sink& sink) {
  Node* at = &root;
  std::string_view rest = path;
  while (true) {
    if (at->kind == Node::Kind::kNull) at->kind = Node::Kind::kMapping;
    if (at->kind != Node::Kind::kMapping) {
      const std::string_view above =
          path.substr(0, rest.size() < path.size() ? path.size() - rest.size() - 1 : 0);
      sink.add(ErrorCode::kSpecForm, place,
               fmt::format("{} is set below {}, which is not a mapping", path,
                           above.empty() ? "the file" : above),
               "override the whole key instead");
      return;
    }
    const std::size_t dot = rest.find('.');
    Entry& entry = entry_of(*at, rest.substr(0, dot), place);
    if (dot == std::string_view::npos) {
      entry.place = place;
      entry.value = std::move(value);
      return;
    }
    rest.remove_prefix(dot + 1);
    at = &entry.value;
  }
}

void apply(Node& root, const Override& change, Sink& sink) {
  const std::string file = "override " + shown(change.path);
  if (const Result<void> known = check_override_path(change.path, {file, 0, 0}); !known) {
    for (const Diagnostic& error : known.diagnostics()) {
      sink.add(error.code, error.place, error.message, error.note);
    }
    return;
  }
  const Place place{file, 1, 1};
  if (const Result<void> readable = check_text(change.value, file); !readable) {
    for (const Diagnostic& error : readable.diagnostics()) {
      sink.add(error.code, error.place, error.message, error.note);
    }
    return;
  }
  if (change.value.find_first_not_of(" \r\n") == std::string::npos) {
    sink.add(ErrorCode::kSpecForm, place, fmt::format("{} is given no value", change.path),
             "write the value as in YAML, such as 128 or [1, 4]");
    return;
  }
  if (std::optional<Node> value = read_tree(change.value, file, sink)) {
    put(root, change.path, std::move(*value), place, sink);
  }
}

}  // namespace

Result<void> check_override_path(const std::string& path, const Place& place) {
  Sink sink;
  if (const std::optional<std::string_view> key = first_key_of(path)) {
    sink.add(ErrorCode::kSpecKey, place, fmt::format("unknown key {}", path),
             fmt::format("{} is a section: override a key of it, such as {}", path, *key));
  } else if (!is_key(path)) {
    report_unknown_key(path, place, sink);
  }
  if (sink.empty()) return {};
  return Failure(sink.take());
}

Result<Spec> with_overrides(std::string_view text, std::string file,
                            std::span<const Override> overrides) {
  Result<TextTree> tree = read_text_tree(text, file);
  if (!tree) return tree.failure();
  for (const Override& change : overrides) apply(tree->root, change, tree->sink);
  return read_spec(std::move(*tree), file);
}

}  // namespace afdep::spec
