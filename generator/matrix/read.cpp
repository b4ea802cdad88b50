// The text of a matrix file to a Matrix.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "generator/matrix/matrix.h"
#include "generator/matrix/node_text.h"
#include "generator/matrix/yaml_error.h"
#include "generator/spec/nearest.h"
#include "generator/spec/node.h"
#include "generator/spec/scalar.h"
#include "generator/spec/sink.h"
#include "generator/spec/source_text.h"
#include "generator/spec/tree.h"

namespace afdep::matrix {
namespace {

using spec::Entry;
using spec::Node;
using Kind = spec::Node::Kind;

void add_all(const Diagnostics& errors, spec::Sink& sink) {
  for (const Diagnostic& error : errors) {
    sink.add(error.code, error.place, error.message, error.note);
  }
}

// `text` with everything outside [begin, end) blank, so that what is left keeps its lines and
// columns. Places count from 1; an `end` of line 0 is the end of the text.
std::string only(std::string_view text, const Place& begin, const Place& end) {
  std::string result;
  int line = 1;
  int column = 1;
  const auto before = [&](const Place& place) {
    return line < place.line || (line == place.line && column < place.column);
  };
  for (const char c : text) {
    if (c == '\n') {
      result += c;
      ++line;
      column = 1;
      continue;
    }
    if (!before(begin) && (end.line == 0 || before(end))) {
      result += c;
    } else if (before(begin) && line == begin.line) {
      result += ' ';
    }
    ++column;
  }
  return result;
}

// A comma-separated list of keys, without the spaces around them.
std::vector<std::string> split_keys(std::string_view text) {
  std::vector<std::string> keys;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view key = text.substr(0, comma);
    while (key.starts_with(' ')) key.remove_prefix(1);
    while (key.ends_with(' ')) key.remove_suffix(1);
    keys.emplace_back(key);
    if (comma == std::string_view::npos) return keys;
    text.remove_prefix(comma + 1);
  }
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text) { matrix_.file = file; }

  Result<Matrix> read() {
    if (const Result<void> readable = spec::check_text(text_, matrix_.file); !readable) {
      return Failure(as_matrix_error(readable.diagnostics().front()));
    }
    text_ = spec::without_byte_order_mark(text_);
    const std::optional<Node> root = spec::read_tree(text_, matrix_.file, sink_);
    // From here on the sink holds errors of this reader only.
    for (Diagnostic& error : sink_.take()) {
      error = as_matrix_error(std::move(error));
      sink_.add(error.code, error.place, error.message, error.note);
    }
    if (root) read_root(*root);
    if (!sink_.empty()) return Failure(sink_.take());
    check_base();
    if (!sink_.empty()) return Failure(sink_.take());
    return std::move(matrix_);
  }

 private:
  void refuse(const Place& place, std::string message, std::string note) {
    sink_.add(ErrorCode::kMatrixFile, place, std::move(message), std::move(note));
  }

  // True if the node has the kind; reports it otherwise.
  bool expect(const Node& node, Kind kind, std::string_view what, std::string_view expected) {
    if (node.kind == kind) return true;
    if (node.kind != Kind::kRefused) {
      refuse(node.place,
             fmt::format("{} is {}, but {} is expected", what, spec::described(node), expected),
             fmt::format("write {} here; {}", expected, kExample));
    }
    return false;
  }

  void read_root(const Node& root) {
    if (!expect(root, Kind::kMapping, "the file", "a mapping with base and axes")) return;
    if (text_.substr(text_.find_first_not_of(" \r\n")).starts_with('{')) {
      refuse(root.place, "the file is one mapping in braces",
             "start base, axes and expect on lines of their own");
      return;
    }
    constexpr std::array<std::string_view, 4> kKeys = {"base", "base_file", "axes", "expect"};
    std::map<std::string_view, const Entry*> given;
    Place end;  // of what the entry before began
    for (auto entry = root.entries.rbegin(); entry != root.entries.rend(); ++entry) {
      if (std::ranges::find(kKeys, entry->key) == kKeys.end()) {
        const auto near = spec::nearest(entry->key, kKeys);
        refuse(entry->place, fmt::format("unknown key {}", spec::shown(entry->key)),
               near ? fmt::format("did you mean {}?", *near)
                    : std::string("a matrix has base or base_file, axes and expect"));
      } else {
        given[entry->key] = &*entry;
      }
      ends_[entry->key] = end;
      end = entry->place;
    }
    read_base(given["base"], given["base_file"], root.place);
    if (given["axes"] != nullptr) {
      read_axes(given["axes"]->value);
    } else {
      refuse(root.place, "axes is missing",
             fmt::format("write the keys to vary and their values; {}", kExample));
    }
    if (given["expect"] != nullptr) read_expectations(given["expect"]->value);
  }

  void read_base(const Entry* base, const Entry* base_file, const Place& root) {
    if (base != nullptr && base_file != nullptr) {
      refuse(base_file->place, "both base and base_file are given", "keep one of them");
      return;
    }
    if (base != nullptr) {
      if (!expect(base->value, Kind::kMapping, "base", "a spec as a mapping")) return;
      matrix_.base_text = only(text_, base->value.place, ends_["base"]);
      matrix_.base_file = matrix_.file;
      base_ = base->value;
    } else if (base_file != nullptr) {
      read_base_file(base_file->value);
    } else {
      refuse(root, "base is missing",
             fmt::format("write a spec below base, or base_file: PATH; {}", kExample));
    }
  }

  void read_base_file(const Node& node) {
    if (!expect(node, Kind::kScalar, "base_file", "the path of a spec")) return;
    const std::filesystem::path path =
        std::filesystem::path(matrix_.file).parent_path() / node.text;
    Result<std::string> text = spec::read_text(path);
    if (!text) {
      const Diagnostic& error = text.diagnostics().front();
      refuse(node.place, fmt::format("base_file {}: {}", spec::shown(path.string()), error.message),
             "base_file is relative to the folder of the matrix file");
      return;
    }
    matrix_.base_text = std::move(*text);
    matrix_.base_file = path.string();
    if (!spec::check_text(matrix_.base_text, matrix_.base_file)) return;  // check_base() reports it
    spec::Sink unused;
    if (std::optional<Node> tree = spec::read_tree(spec::without_byte_order_mark(matrix_.base_text),
                                                   matrix_.base_file, unused)) {
      base_ = std::move(*tree);
    }
  }

  void read_axes(const Node& node) {
    if (!expect(node, Kind::kMapping, "axes", "a mapping of keys to lists of values")) return;
    std::map<std::string, int> lines;  // key -> where it was first an axis
    for (const Entry& entry : node.entries) read_axis(entry, lines);
    if (node.entries.empty()) {
      refuse(node.place, "axes is empty", "name at least one key and its values");
    }
    check_nesting();
    check_size(node.place);
  }

  void read_axis(const Entry& entry, std::map<std::string, int>& lines) {
    Axis axis;
    axis.place = entry.place;
    axis.keys = split_keys(entry.key);
    bool good = true;
    for (const std::string& key : axis.keys) {
      if (key.empty()) {
        refuse(entry.place, fmt::format("axis {} names an empty key", spec::shown(entry.key)),
               "write keys that vary together as: KEY, KEY");
        good = false;
        continue;
      }
      if (const Result<void> known = spec::check_override_path(key, entry.place); !known) {
        add_all(known.diagnostics(), sink_);
        good = false;
        continue;
      }
      const auto [first, fresh] = lines.emplace(key, entry.place.line);
      if (!fresh) {
        refuse(entry.place, fmt::format("{} is an axis twice", key),
               fmt::format("it was first one in line {}; remove one of the two", first->second));
        good = false;
      }
    }
    if (!expect(entry.value, Kind::kSequence, fmt::format("axis {}", spec::shown(entry.key)),
                "a list of values")) {
      return;
    }
    if (entry.value.items.empty()) {
      refuse(entry.value.place, fmt::format("axis {} has no values", spec::shown(entry.key)),
             "give it at least one value, or remove it");
      return;
    }
    for (const Node& item : entry.value.items) good &= read_value(item, entry.key, axis);
    if (good) matrix_.axes.push_back(std::move(axis));
  }

  bool read_value(const Node& item, const std::string& name, Axis& axis) {
    AxisValue value;
    if (axis.keys.size() == 1) {
      if (!read_part(item, name, value)) return false;
    } else {
      if (item.kind != Kind::kSequence || item.items.size() != axis.keys.size()) {
        if (item.kind == Kind::kRefused) return false;
        refuse(item.place,
               item.kind == Kind::kSequence
                   ? fmt::format("axis {} has {} keys, but this choice has {} value{}",
                                 spec::shown(name), axis.keys.size(), item.items.size(),
                                 item.items.size() == 1 ? "" : "s")
                   : fmt::format("axis {} has {} keys, but this choice is {}", spec::shown(name),
                                 axis.keys.size(), spec::described(item)),
               "write each choice as a list with one value a key, such as [8, zero]");
        return false;
      }
      for (const Node& part : item.items) {
        if (!read_part(part, name, value)) return false;
      }
    }
    const auto known = std::ranges::find_if(
        axis.values, [&](const AxisValue& other) { return other.texts == value.texts; });
    if (known != axis.values.end()) {
      refuse(item.place,
             fmt::format("axis {} has {} twice", spec::shown(name), fmt::join(value.texts, ", ")),
             fmt::format("it was first given in line {}; remove one of the two",
                         known->places.front().line));
      return false;
    }
    axis.values.push_back(std::move(value));
    return true;
  }

  bool read_part(const Node& node, const std::string& name, AxisValue& value) {
    if (node.kind == Kind::kRefused) return false;
    if (node.kind == Kind::kNull) {
      refuse(node.place, fmt::format("axis {} has an empty value", spec::shown(name)),
             "write the value, or remove it");
      return false;
    }
    value.texts.push_back(to_text(node));
    value.places.push_back(node.place);
    return true;
  }

  // An axis below another would lose to it, or win, by their order.
  void check_nesting() {
    for (const Axis& outer : matrix_.axes) {
      for (const std::string& key : outer.keys) {
        for (const Axis& inner : matrix_.axes) {
          for (const std::string& other : inner.keys) {
            if (!other.starts_with(key + ".")) continue;
            refuse(inner.place, fmt::format("axis {} is part of axis {}", other, key),
                   "vary one of the two");
          }
        }
      }
    }
  }

  void check_size(const Place& place) {
    std::uint64_t cells = 1;
    std::vector<std::size_t> sizes;
    for (const Axis& axis : matrix_.axes) {
      sizes.push_back(axis.values.size());
      const bool fits = cells <= std::numeric_limits<std::uint64_t>::max() / axis.values.size();
      cells = fits ? cells * axis.values.size() : std::numeric_limits<std::uint64_t>::max();
    }
    if (cells <= kMaxCells) return;
    const bool counted = cells != std::numeric_limits<std::uint64_t>::max();
    refuse(place,
           fmt::format("the axes give {} = {} cells; the limit is {}", fmt::join(sizes, " x "),
                       counted ? fmt::format("{}", cells) : std::string("over 10^19"), kMaxCells),
           "give an axis fewer values, let keys vary together (KEY, KEY:), or make two files");
  }

  void read_expectations(const Node& node) {
    if (!expect(node, Kind::kSequence, "expect",
                "a list of {where: {KEY: VALUE}, refused: CODE}")) {
      return;
    }
    for (const Node& item : node.items) read_expectation(item);
  }

  void read_expectation(const Node& node) {
    if (!expect(node, Kind::kMapping, "an entry of expect",
                "{where: {KEY: VALUE}, refused: CODE}")) {
      return;
    }
    Expectation expectation;
    expectation.place = node.place;
    bool where = false;
    bool refused = false;
    bool good = true;
    for (const Entry& entry : node.entries) {
      if (entry.key == "where") {
        where = true;
        good &= read_where(entry.value, expectation);
      } else if (entry.key == "refused") {
        refused = true;
        good &= read_code(entry.value, expectation);
      } else {
        constexpr std::array<std::string_view, 2> kKeys = {"where", "refused"};
        const auto near = spec::nearest(entry.key, kKeys);
        refuse(entry.place, fmt::format("unknown key {} in expect", spec::shown(entry.key)),
               near ? fmt::format("did you mean {}?", *near)
                    : std::string("an entry of expect has where and refused"));
        good = false;
      }
    }
    // A misspelt key was probably the one that is missing.
    if (good && !where) {
      refuse(node.place, "an entry of expect has no where", "say which cells: where: {KEY: VALUE}");
    }
    if (good && !refused) {
      refuse(node.place, "an entry of expect has no refused", "name the code: refused: E207");
    }
    if (good && where && refused) matrix_.expectations.push_back(std::move(expectation));
  }

  bool read_code(const Node& node, Expectation& expectation) {
    if (!expect(node, Kind::kScalar, "refused", "an error code such as E207")) return false;
    for (const ErrorInfo& info : error_table()) {
      if (to_string(info.code) != node.text) continue;
      expectation.refused = info.code;
      return true;
    }
    refuse(node.place, fmt::format("refused = {} is not an error code", spec::shown(node.text)),
           "docs/errors.md lists every code");
    return false;
  }

  bool read_where(const Node& node, Expectation& expectation) {
    if (!expect(node, Kind::kMapping, "where", "a mapping of axis keys to values")) return false;
    if (node.entries.empty()) {
      refuse(node.place, "where is empty", "name at least one axis and its value");
      return false;
    }
    bool good = true;
    for (const Entry& entry : node.entries) good &= read_condition(entry, expectation);
    return good;
  }

  bool read_condition(const Entry& entry, Expectation& expectation) {
    const std::string value = to_text(entry.value);
    std::vector<std::string_view> keys;
    std::vector<std::string> known;
    bool found = false;
    for (const Axis& axis : matrix_.axes) {
      for (std::size_t i = 0; i < axis.keys.size(); ++i) {
        keys.push_back(axis.keys[i]);
        if (axis.keys[i] != entry.key) continue;
        found = true;
        for (const AxisValue& each : axis.values) {
          if (std::ranges::find(known, each.texts[i]) == known.end())
            known.push_back(each.texts[i]);
        }
      }
    }
    if (!found) {
      if (!sink_.empty()) return false;  // an axis that was refused may be the one
      const auto near = spec::nearest(entry.key, keys);
      refuse(entry.place, fmt::format("where names {}, which is no axis", spec::shown(entry.key)),
             near ? fmt::format("did you mean {}?", *near)
                  : fmt::format("the axes are {}", fmt::join(keys, ", ")));
      return false;
    }
    if (entry.value.kind == Kind::kRefused) return false;
    if (std::ranges::find(known, value) == known.end()) {
      refuse(entry.value.place,
             fmt::format("where has {} = {}, which is no value of the axis", entry.key,
                         value.empty() ? "nothing" : spec::shown(value)),
             fmt::format("the values are {}", fmt::join(known, ", ")));
      return false;
    }
    expectation.where.emplace_back(entry.key, value);
    return true;
  }

  // Looks at the base for what no axis value can repair, and at the expectations against the cells.
  void check_base() {
    for (const Axis& axis : matrix_.axes) {
      for (const std::string& key : axis.keys) matrix_.base_values.push_back(base_value(key));
    }
    const std::vector<Cell> cells = expand(matrix_);
    const Result<spec::Spec> first = cell_spec(matrix_, cells.front());
    if (!first) {
      for (const Diagnostic& error : first.diagnostics()) {
        const bool of_form = error.code == ErrorCode::kSpecUnreadable ||
                             error.code == ErrorCode::kSpecKey ||
                             error.code == ErrorCode::kSpecForm;
        if (of_form && !of_axis(error.place, cells.front())) {
          sink_.add(error.code, error.place, error.message, error.note);
        }
      }
    }
    for (const Expectation& expectation : matrix_.expectations)
      check_expectation(expectation, cells);
  }

  static bool of_axis(const Place& place, const Cell& cell) {
    return std::ranges::find(cell.places, place) != cell.places.end();
  }

  void check_expectation(const Expectation& expectation, const std::vector<Cell>& cells) {
    bool matched = false;
    for (const Cell& cell : cells) {
      if (!matches(expectation, cell)) continue;
      matched = true;
      if (cell.must_refuse == expectation.refused) continue;
      refuse(expectation.place,
             fmt::format("cell {} is to be refused with {} here and with {} by an earlier entry",
                         cell.number, to_string(expectation.refused), to_string(*cell.must_refuse)),
             "let the entries name different cells");
      return;
    }
    if (!matched) {
      refuse(expectation.place, "where matches no cell", "these values never meet in one cell");
    }
  }

  // What the base gives for a key, as written.
  [[nodiscard]] std::optional<std::string> base_value(std::string_view path) const {
    const Node* node = &base_;
    while (true) {
      const std::size_t dot = path.find('.');
      const auto entry = std::ranges::find(node->entries, path.substr(0, dot), &Entry::key);
      if (entry == node->entries.end()) return std::nullopt;
      if (dot == std::string_view::npos) return to_text(entry->value);
      node = &entry->value;
      path.remove_prefix(dot + 1);
    }
  }

  std::string_view text_;
  spec::Sink sink_;
  Matrix matrix_;
  Node base_;
  std::map<std::string_view, Place> ends_;  // of each top-level key, where the next one begins
};

}  // namespace

Result<Matrix> read(std::string_view text, const std::string& file) {
  return Reader(text, file).read();
}

Result<Matrix> load(const std::filesystem::path& path) {
  const Result<std::string> text = spec::read_text(path);
  if (!text) return Failure(as_matrix_error(text.diagnostics().front()));
  return read(*text, path.string());
}

}  // namespace afdep::matrix
