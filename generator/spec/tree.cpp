#include "generator/spec/tree.h"

#include <sstream>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

namespace afdep::spec {
namespace {

// Ends a parse whose error is already in the sink.
struct Stop {};

// Builds the tree from yaml-cpp's events. Its own Node layer would expand aliases and merge
// duplicates.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::string_view text, const std::string& file, Sink& sink)
      : text_(text), file_(file), sink_(sink) {}

  [[nodiscard]] bool has_root() const { return has_root_; }
  Node take_root() { return std::move(root_); }

  Place place(const YAML::Mark& mark) const { return {file_, mark.line + 1, mark.column + 1}; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    sink_.add(ErrorCode::kSpecUnreadable, place(mark), "a second YAML document",
              "one spec per file: remove the document separator");
    throw Stop{};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check_anchor(mark, anchor);
    add(scalar(mark, Node::Kind::kNull, ""));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    sink_.add(ErrorCode::kSpecKey, place(mark), "a spec has no aliases", "write the value out");
    add(scalar(mark, Node::Kind::kRefused, ""));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_anchor(mark, anchor);
    check_closed(mark);
    const bool refused = refuse_tag(mark, tag);
    Node node = scalar(mark, refused ? Node::Kind::kRefused : Node::Kind::kScalar, value);
    node.plain = tag == "?";
    add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kSequence);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::kMapping);
  }
  void OnMapEnd() override { close(); }

 private:
  // A collection that is being filled. In a mapping, keys and values take turns.
  struct Level {
    Node node;
    bool refused = false;
    bool awaits_value = false;
    bool drop_value = false;  // its key was refused
    std::string key;
    Place key_place;
    std::unordered_map<std::string, int> lines;  // key -> where it was first given
  };

  Node scalar(const YAML::Mark& mark, Node::Kind kind, std::string value) const {
    Node node;
    node.kind = kind;
    node.place = place(mark);
    node.text = std::move(value);
    return node;
  }

  void check_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    sink_.add(ErrorCode::kSpecKey, place(mark), "a spec has no anchors",
              "remove it, and write each value out");
  }

  // yaml-cpp takes the end of the file for the end of a quoted string.
  void check_closed(const YAML::Mark& mark) {
    const auto at = static_cast<std::size_t>(mark.pos);
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '\'')) return;
    const char quote = text_[at];
    for (std::size_t i = at + 1; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        // A doubled single quote stands for one.
        if (quote == '"' || i + 1 == text_.size() || text_[i + 1] != quote) return;
        ++i;
      }
    }
    sink_.add(ErrorCode::kSpecUnreadable, place(mark), "not YAML: a quoted string without an end",
              "close the quotes");
    throw Stop{};
  }

  // yaml-cpp marks quoted scalars with the tag "!"; a written "!" is told apart by the text itself.
  bool refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    const auto at = static_cast<std::size_t>(mark.pos);
    const bool written = at < text_.size() && text_[at] == '!';
    if (!written && (tag.empty() || tag == "?" || tag == "!")) return false;
    sink_.add(ErrorCode::kSpecUnreadable, place(mark),
              fmt::format("a spec has no YAML tags: {}", shown(tag)),
              "remove it; the key decides the type of its value");
    return true;
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    if (levels_.size() >= static_cast<std::size_t>(kMaxDepth)) {
      sink_.add(ErrorCode::kSpecUnreadable, place(mark),
                fmt::format("nesting deeper than {} levels", kMaxDepth),
                "a spec nests five levels at most; check the brackets and the indentation");
      throw Stop{};
    }
    check_anchor(mark, anchor);
    Level level;
    level.node = scalar(mark, kind, "");
    level.refused = refuse_tag(mark, tag);
    levels_.push_back(std::move(level));
  }

  void close() {
    Node node = std::move(levels_.back().node);
    if (levels_.back().refused) node = Node{Node::Kind::kRefused, false, node.place, "", {}, {}};
    levels_.pop_back();
    add(std::move(node));
  }

  void add(Node node) {
    if (sink_.full()) throw Stop{};
    if (levels_.empty()) {
      root_ = std::move(node);
      has_root_ = true;
      return;
    }
    Level& level = levels_.back();
    if (level.node.kind == Node::Kind::kSequence) {
      level.node.items.push_back(std::move(node));
    } else if (level.awaits_value) {
      level.awaits_value = false;
      if (!level.drop_value) {
        level.node.entries.push_back({level.key, level.key_place, std::move(node)});
      }
    } else {
      take_key(level, std::move(node));
    }
  }

  void take_key(Level& level, Node node) {
    level.awaits_value = true;
    level.drop_value = true;
    if (node.kind == Node::Kind::kRefused) return;
    if (node.kind != Node::Kind::kScalar) {
      sink_.add(ErrorCode::kSpecForm, node.place, "a key that is not a word", "write key: value");
      return;
    }
    if (node.text == "<<") {
      sink_.add(ErrorCode::kSpecKey, node.place, "a spec has no merge keys", "write the keys out");
      return;
    }
    const auto [first, fresh] = level.lines.emplace(node.text, node.place.line);
    if (!fresh) {
      sink_.add(ErrorCode::kSpecKey, node.place, fmt::format("duplicate key {}", shown(node.text)),
                fmt::format("it was first given in line {}; remove one of the two", first->second));
      return;
    }
    level.drop_value = false;
    level.key = std::move(node.text);
    level.key_place = node.place;
  }

  std::string_view text_;
  const std::string& file_;
  Sink& sink_;
  std::vector<Level> levels_;
  int documents_ = 0;
  bool has_root_ = false;
  Node root_;
};

}  // namespace

std::optional<Node> read_tree(std::string_view text, const std::string& file, Sink& sink) {
  TreeBuilder builder(text, file, sink);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Stop&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const auto at = static_cast<std::size_t>(error.mark.pos);
    if (error.mark.pos >= 0 && at < text.size() && text[at] == '*') {
      sink.add(ErrorCode::kSpecKey, builder.place(error.mark), "a spec has no aliases",
               "write the value out");
    } else {
      sink.add(ErrorCode::kSpecUnreadable, builder.place(error.mark),
               fmt::format("not YAML: {}", shown(error.msg)),
               "check quotes, brackets and indentation here and in the line above");
    }
    return std::nullopt;
  }
  if (!builder.has_root()) {
    sink.add(ErrorCode::kSpecUnreadable, {file, 1, 1}, "the file is empty",
             "write a spec; specs/reference.yaml shows every key");
    return std::nullopt;
  }
  return builder.take_root();
}

}  // namespace afdep::spec
