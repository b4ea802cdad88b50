// One template file as a tree of its directives. Internal to the engine.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/support/diagnostic.h"

namespace afdep::emit {

// `name` or `variable.field`; column is where it starts.
struct Name {
  std::string head;
  std::string field;  // empty if there is no dot
  int column = 0;

  [[nodiscard]] std::string spelled() const { return field.empty() ? head : head + "." + field; }
};

// A line of output: literal text and substitutions in turn.
struct Line {
  struct Piece {
    std::string literal;  // comes before the substitution
    Name substitution;    // head is empty in a last piece that is only literal
  };
  int line = 0;
  std::vector<Piece> pieces;
};

struct Node;
using Body = std::vector<Node>;

struct Arm {
  int line = 0;
  std::string text;  // the directive as written, without indentation
  Name condition;    // head is empty for else
  bool negated = false;
  Body body;

  [[nodiscard]] bool is_else() const { return condition.head.empty(); }
};

struct If {
  std::vector<Arm> arms;
};

struct For {
  int line = 0;
  std::string text;
  std::string variable;
  int variable_column = 0;
  Name list;
  Body body;
};

struct Include {
  int line = 0;
  int column = 0;  // of the path
  std::string path;
  std::string indentation;
};

struct Node {
  std::variant<Line, If, For, Include> held;
};

struct Template {
  std::string path;
  Body body;
  Diagnostics mistakes;  // of form: bad or unbalanced directives, bad names; the body holds what
                         // could be read
};

// A template mistake at a place. It is afdep's own mistake, so production turns it into
// InternalError and no user meets its code.
Diagnostic template_mistake(std::string path, int line, int column, std::string message,
                            std::string note = {});

Template parse_template(std::string path, std::string_view text);

// Whether the text is a name: [a-z_][a-z0-9_]* and no word of the directives.
bool is_template_name(std::string_view text);

}  // namespace afdep::emit
