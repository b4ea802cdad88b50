#include "generator/spec/printer.h"

#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "generator/spec/keys.h"
#include "generator/spec/resolve.h"
#include "generator/spec/value_text.h"

namespace afdep::spec {
namespace {

// Lines of a document, grouped under the headings of their sections.
class Document {
 public:
  void add(std::string_view path, std::string_view value, std::string_view comment) {
    open(path);
    const bool block = value.starts_with('\n');
    // After a block value, a comment would belong to its last item.
    text_ += fmt::format("{}{}:", indent(path), last_of(path));
    if (block && !comment.empty()) text_ += fmt::format("  # {}", comment);
    text_ += block ? std::string(value) : fmt::format(" {}", value);
    if (!block && !comment.empty()) text_ += fmt::format("  # {}", comment);
    text_ += '\n';
  }

  void add_unwritten(std::string_view path, std::string_view value, std::string_view comment) {
    open(path);
    text_ += fmt::format("{}# {}: {}  # {}\n", indent(path), last_of(path), value, comment);
  }

  std::string take() { return std::move(text_); }

 private:
  static std::string_view indent(std::string_view path) {
    return section_of(path).empty() ? "" : "  ";
  }

  void open(std::string_view path) {
    const std::string_view section = section_of(path);
    if (section == section_) return;
    section_ = section;
    if (!section.empty()) text_ += fmt::format("{}:\n", section);
  }

  std::string text_;
  std::string section_;
};

// As value_text, with the names that some integers have.
template <typename T>
std::string text_of(const Key& key, const T& value) {
  if constexpr (std::is_same_v<T, int>) {
    if (key.takes_auto && value == kAutoValue) return "auto";
  }
  return value_text(value);
}

std::string switches_text(const std::map<std::string, bool>& switches) {
  std::string text;
  for (const auto& [name, on] : switches) text += fmt::format("\n  {}: {}", name, on);
  return text.empty() ? "{}" : text;
}

class GivenPrinter {
 public:
  template <typename T>
  void operator()(const Key& key, const Field<T>& field) {
    if (field.given) document_.add(key.path, text_of(key, field.value), "");
  }
  void operator()(const Key& key, const Field<std::map<std::string, bool>>& field) {
    if (field.given) document_.add(key.path, switches_text(field.value), "");
  }
  void operator()(const Key& key, const Field<Protocol>& all,
                  const Field<std::map<int, Protocol>>& buckets) {
    if (buckets.given) {
      document_.add(key.path, value_text(buckets.value), "");
    } else {
      (*this)(key, all);
    }
  }

  std::string take() { return document_.take(); }

 private:
  Document document_;
};

class ResolvedPrinter {
 public:
  explicit ResolvedPrinter(const Spec& spec) : spec_(spec) {}

  template <typename T>
  void operator()(const Key& key, const Field<T>& field) {
    if (field.given) {
      document_.add(key.path, text_of(key, field.value), given_comment(key.path));
    } else if (const auto unwritten = unwritten_value(key.path)) {
      document_.add_unwritten(key.path, *unwritten, unwritten_comment(key.path));
    } else {
      document_.add(key.path, text_of(key, field.value), default_comment(key.path, field.place));
    }
  }

  void operator()(const Key& key, const Field<std::map<std::string, bool>>& field) {
    for (const std::string_view name : ablation_names()) {
      const bool given = field.value.contains(std::string(name));
      document_.add(fmt::format("{}.{}", key.path, name), value_text(ablated(spec_, name)),
                    given ? "given" : "default");
    }
  }

  void operator()(const Key& key, const Field<Protocol>& all,
                  const Field<std::map<int, Protocol>>& buckets) {
    if (buckets.given) {
      document_.add(key.path, value_text(buckets.value), "given");
    } else {
      (*this)(key, all);
    }
  }

  std::string take() { return document_.take(); }

 private:
  // A value that is neither given nor a default to write: what holds instead.
  std::optional<std::string> unwritten_value(std::string_view path) const {
    if (path == "model.preset" || path == "topology.ratio" || path == "placement.map" ||
        path == "kernel.tuned_on") {
      return "none";
    }
    if (path == "topology.attention_ranks") return std::to_string(attention_ranks(spec_));
    if (path == "topology.ffn_ranks") return std::to_string(ffn_ranks(spec_));
    if (path == "topology.scale" && !spec_.topology.ratio.given) return "none";
    if (path == "topology.domains") return "one domain";
    if (path == "topology.mixed") return std::string(to_name(spec_.topology.mixed.value));
    if (path == "cache.dir") return "the user's cache directory";
    return std::nullopt;
  }

  std::string_view unwritten_comment(std::string_view path) const {
    const bool ranks = path == "topology.attention_ranks" || path == "topology.ffn_ranks";
    return ranks ? "from ratio" : "default";
  }

  std::string given_comment(std::string_view path) const {
    if (path == "placement.redundant_experts" &&
        spec_.placement.redundant_experts.value == kAutoValue) {
      return fmt::format("given, here {}", redundant_experts(spec_));
    }
    if (path == "dispatch.scale" && spec_.dispatch_scale.value == Scale::kByDtype) {
      return fmt::format("given, here {}", to_name(dispatch_scale(spec_)));
    }
    return "given";
  }

  std::string default_comment(std::string_view path, const Place& place) const {
    // Of the keys that are not given, only a preset's have a place.
    if (place.line > 0) return fmt::format("preset {}", spec_.model.preset.value);
    if (path == "dispatch.scale") {
      return fmt::format("default, here {}", to_name(dispatch_scale(spec_)));
    }
    return "default";
  }

  const Spec& spec_;
  Document document_;
};

}  // namespace

std::string print(const Spec& spec) {
  GivenPrinter printer;
  visit_keys(spec, printer);
  return printer.take();
}

std::string print_resolved(const Spec& spec) {
  ResolvedPrinter printer(spec);
  visit_keys(spec, printer);
  return printer.take();
}

}  // namespace afdep::spec
