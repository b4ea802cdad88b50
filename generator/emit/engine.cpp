#include "generator/emit/engine.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "generator/emit/template_tree.h"

namespace afdep::emit {
namespace {

const char* type_name(const Value& value) {
  constexpr const char* kNames[] = {"a string", "an integer", "a boolean", "a list"};
  return kNames[value.held.index()];
}

// A loop variable that is in scope.
struct Binding {
  std::string variable;
  std::string path;  // of the records, e.g. "peers[]"; for the search of unused arguments
  const Record* record =
      nullptr;  // null while a loop that does not run is read for the names in it
};

class Expander {
 public:
  Expander(const Arguments& arguments, const TemplateSource& templates, Coverage* coverage)
      : arguments_(arguments), templates_(templates), coverage_(coverage) {}

  Result<std::string> run(std::string_view path) {
    check_names(arguments_, "");
    const Template* root = load(path);
    if (root == nullptr) {
      return Failure(template_mistake(std::string(path), 0, 0, "no such template"));
    }
    open_.push_back({root, 0});
    walk(root->body, "", /*active=*/true);
    // A mistake may hide the line that uses an argument, so unused ones are only sought without
    // any.
    if (mistakes_.empty()) check_used(arguments_, "", root->path);
    if (!mistakes_.empty()) return Failure(std::move(mistakes_));
    return std::move(output_);
  }

 private:
  struct Open {
    const Template* file = nullptr;
    int include_line = 0;  // in the file before it
  };

  // Adds a mistake in the file that is being read, unless a loop has met it before.
  void mistake(int line, int column, std::string message, std::string note = {}) {
    for (std::size_t depth = open_.size(); depth > 1; --depth) {
      if (!note.empty()) note += "; ";
      note += fmt::format("included from {}:{}", open_[depth - 2].file->path,
                          open_[depth - 1].include_line);
    }
    add(template_mistake(open_.back().file->path, line, column, std::move(message),
                         std::move(note)));
  }

  void add(Diagnostic diagnostic) {
    if (std::ranges::find(mistakes_, diagnostic) == mistakes_.end()) {
      mistakes_.push_back(std::move(diagnostic));
    }
  }

  // Null if there is no such template. The mistakes of its form are added on the first load.
  const Template* load(std::string_view path) {
    if (const auto found = loaded_.find(path); found != loaded_.end()) return found->second.get();
    const std::optional<std::string_view> text = templates_(path);
    if (!text) return nullptr;
    auto parsed = std::make_unique<Template>(parse_template(std::string(path), *text));
    for (const Diagnostic& diagnostic : parsed->mistakes) add(diagnostic);
    // What could be read of an ill-formed file would only give further mistakes that are not the
    // author's.
    if (!parsed->mistakes.empty()) parsed->body.clear();
    return loaded_.emplace(std::string(path), std::move(parsed)).first->second.get();
  }

  const Binding* find_binding(std::string_view variable) const {
    const auto found = std::ranges::find(scope_, variable, &Binding::variable);
    return found == scope_.end() ? nullptr : &*found;
  }

  // The value that a name stands for, and its path for the search of unused arguments. Null if
  // there is none: with a mistake added if `active`, or if the name cannot mean anything here
  // whatever the arguments.
  const Value* resolve(const Name& name, int line, bool active, std::string* path = nullptr) {
    const Record* record = &arguments_;
    std::string prefix;
    const Binding* binding = find_binding(name.head);
    if (!name.field.empty()) {
      if (binding == nullptr) {
        mistake(line, name.column, fmt::format("'{}' is not a loop variable here", name.head));
        return nullptr;
      }
      record = binding->record;
      prefix = binding->path + ".";
    } else if (binding != nullptr) {
      mistake(line, name.column,
              fmt::format("'{0}' is a record: name one of its fields, as '{0}.field'", name.head));
      return nullptr;
    }
    const std::string& key = name.field.empty() ? name.head : name.field;
    used_.insert(prefix + key);
    if (path != nullptr) *path = prefix + key;
    if (record == nullptr) return nullptr;
    if (const auto found = record->fields.find(key); found != record->fields.end()) {
      return &found->second;
    }
    if (active) mistake(line, name.column, fmt::format("unknown name '{}'", name.spelled()));
    return nullptr;
  }

  void walk(const Body& body, const std::string& indentation, bool active) {
    for (const Node& node : body) {
      std::visit([&](const auto& held) { walk(held, indentation, active); }, node.held);
    }
  }

  void walk(const Line& line, const std::string& indentation, bool active) {
    std::string text = line.pieces.empty() ? std::string() : indentation;
    for (const Line::Piece& piece : line.pieces) {
      text += piece.literal;
      if (piece.substitution.head.empty()) continue;
      const Value* value = resolve(piece.substitution, line.line, active);
      if (value != nullptr && active) substitute(*value, piece.substitution, line.line, text);
    }
    if (active) output_ += text + "\n";
  }

  void substitute(const Value& value, const Name& name, int line, std::string& text) {
    if (const auto* string = std::get_if<std::string>(&value.held)) {
      if (string->find('\n') != std::string::npos) {
        mistake(line, name.column, fmt::format("'{}' holds more than one line", name.spelled()),
                "pass a list of records and loop over it");
        return;
      }
      text += *string;
    } else if (const auto* integer = std::get_if<std::int64_t>(&value.held)) {
      text += fmt::format("{}", *integer);
    } else if (const auto* flag = std::get_if<bool>(&value.held)) {
      text += *flag ? "true" : "false";
    } else {
      mistake(line, name.column, fmt::format("'{}' is a list: loop over it", name.spelled()));
    }
  }

  // Whether the arm's condition holds; false after a mistake.
  bool holds(const Arm& arm, bool active) {
    const Value* value = resolve(arm.condition, arm.line, active);
    if (value == nullptr) return false;
    const bool* flag = std::get_if<bool>(&value->held);
    if (flag != nullptr) return *flag != arm.negated;
    if (active) {
      mistake(arm.line, arm.condition.column,
              fmt::format("'{}' is {}: a condition is a boolean", arm.condition.spelled(),
                          type_name(*value)));
    }
    return false;
  }

  void walk(const If& chain, const std::string& indentation, bool active) {
    bool decided = !active;  // whether an earlier arm was taken, or none can be
    for (const Arm& arm : chain.arms) {
      const Directive directive = directive_of(arm.line, arm.text, /*is_loop=*/false);
      declare(directive);
      // Conditions after the taken arm are not evaluated, only read for the names in them.
      const bool evaluated = !decided;
      const bool holding = arm.is_else() ? evaluated : holds(arm, evaluated) && evaluated;
      if (active && (evaluated || arm.is_else())) record(directive, holding);
      walk(arm.body, indentation, holding);
      decided = decided || holding;
    }
  }

  void walk(const For& loop, const std::string& indentation, bool active) {
    const Directive directive = directive_of(loop.line, loop.text, /*is_loop=*/true);
    declare(directive);
    if (loop.variable.empty() || loop.list.head.empty()) return;  // its form is wrong, and reported
    std::string path;
    const Value* value = resolve(loop.list, loop.line, active, &path);
    const bool is_argument = arguments_.fields.contains(loop.variable);
    if (is_argument || find_binding(loop.variable) != nullptr) {
      mistake(loop.line, loop.variable_column,
              fmt::format("loop variable '{}' hides {} of that name", loop.variable,
                          is_argument ? "an argument" : "a loop variable"));
      return;
    }
    const std::vector<Record>* records = nullptr;
    if (active && value != nullptr) {
      records = std::get_if<std::vector<Record>>(&value->held);
      if (records == nullptr) {
        mistake(
            loop.line, loop.list.column,
            fmt::format("'{}' is {}: a loop takes a list", loop.list.spelled(), type_name(*value)));
      }
    }
    if (records != nullptr) record(directive, !records->empty());
    scope_.push_back({loop.variable, path + "[]", nullptr});
    if (records == nullptr || records->empty()) {
      walk(loop.body, indentation, /*active=*/false);
    } else {
      for (const Record& element : *records) {
        scope_.back().record = &element;
        walk(loop.body, indentation, /*active=*/true);
      }
    }
    scope_.pop_back();
  }

  void walk(const Include& include, const std::string& indentation, bool active) {
    const Template* fragment = load(include.path);
    if (fragment == nullptr) {
      mistake(include.line, include.column, fmt::format("no such template '{}'", include.path));
      return;
    }
    const auto same = std::ranges::find(open_, fragment, &Open::file);
    if (same != open_.end()) {
      std::string cycle;
      for (auto at = same; at != open_.end(); ++at) cycle += at->file->path + " -> ";
      mistake(include.line, include.column, "include cycle: " + cycle + include.path);
      return;
    }
    open_.push_back({fragment, include.line});
    walk(fragment->body, indentation + include.indentation, active);
    open_.pop_back();
  }

  Directive directive_of(int line, const std::string& text, bool is_loop) const {
    return {open_.back().file->path, line, text, is_loop};
  }
  void declare(const Directive& directive) {
    if (coverage_ != nullptr) coverage_->declare(directive);
  }
  void record(const Directive& directive, bool taken) {
    if (coverage_ != nullptr) coverage_->record(directive, taken ? Side::kTaken : Side::kNotTaken);
  }

  void check_names(const Record& record, const std::string& prefix) {
    for (const auto& [name, value] : record.fields) {
      AFDEP_CHECK(is_template_name(name), "not a template name: '" + prefix + name + "'");
      if (const auto* records = std::get_if<std::vector<Record>>(&value.held)) {
        for (const Record& element : *records) check_names(element, prefix + name + "[].");
      }
    }
  }

  void check_used(const Record& record, const std::string& prefix, const std::string& root) {
    for (const auto& [name, value] : record.fields) {
      const std::string path = prefix + name;
      if (!used_.contains(path)) {
        add(template_mistake(root, 0, 0, fmt::format("unused argument '{}'", path),
                             "no line of the template or its fragments names it"));
        continue;
      }
      if (const auto* records = std::get_if<std::vector<Record>>(&value.held)) {
        for (const Record& element : *records) check_used(element, path + "[].", root);
      }
    }
  }

  const Arguments& arguments_;
  const TemplateSource& templates_;
  Coverage* coverage_;
  std::map<std::string, std::unique_ptr<Template>, std::less<>> loaded_;
  std::vector<Open> open_;      // the template and the fragments being read, outermost first
  std::vector<Binding> scope_;  // outermost first
  std::set<std::string> used_;  // paths that some line names, taken or not
  Diagnostics mistakes_;
  std::string output_;
};

}  // namespace

Result<std::string> expand(std::string_view template_path, const Arguments& arguments,
                           const TemplateSource& templates, Coverage* coverage) {
  return Expander(arguments, templates, coverage).run(template_path);
}

}  // namespace afdep::emit
