#include "generator/emit/template_tree.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace afdep::emit {
namespace {

constexpr std::string_view kMark = "//%";
constexpr std::array<std::string_view, 9> kWords = {"if", "elif", "else", "end",    "for",
                                                    "in", "not",  "when", "include"};

bool is_path_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '/' ||
         c == '.';
}

// A word of a directive line and its 1-based column.
struct Word {
  std::string_view text;
  int column = 0;
};

std::vector<Word> split(std::string_view line, std::size_t from) {
  std::vector<Word> words;
  for (std::size_t at = from; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = end;
  }
  return words;
}

class Parser {
 public:
  Parser(std::string path, std::string_view text) : text_(text) { tree_.path = std::move(path); }

  Template run() {
    tree_.body = parse_body(/*opener=*/nullptr);
    return std::move(tree_);
  }

 private:
  struct Opener {
    int line = 0;
    int column = 0;
    std::string text;
    bool is_if = false;
    bool seen_else = false;
  };
  // The directive that ended a body: elif, else or end.
  struct Closer {
    int line = 0;
    int column = 0;
    std::vector<Word> words;
    std::string text;
  };

  void mistake(int line, int column, std::string message, std::string note = {}) {
    tree_.mistakes.push_back(
        template_mistake(tree_.path, line, column, std::move(message), std::move(note)));
  }

  bool next_line(std::string_view& line) {
    if (at_ >= text_.size()) return false;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    line = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++line_;
    return true;
  }

  bool read_name(const Word& word, Name& name) {
    const std::size_t dot = word.text.find('.');
    const std::string_view head = word.text.substr(0, dot);
    const std::string_view field =
        dot == std::string_view::npos ? std::string_view() : word.text.substr(dot + 1);
    if (!is_template_name(head) || (dot != std::string_view::npos && !is_template_name(field))) {
      mistake(line_, word.column, fmt::format("'{}' is not a name", word.text),
              "a name is `name` or `variable.field` of [a-z0-9_]; templates hold no expressions");
      return false;
    }
    name = {std::string(head), std::string(field), word.column};
    return true;
  }

  // The text of a line from `at` on.
  Line parse_text(std::string_view line, std::size_t at) {
    Line parsed{.line = line_, .pieces = {}};
    if (const std::size_t mark = line.find(kMark, at); mark != std::string_view::npos) {
      mistake(line_, static_cast<int>(mark) + 1, "a directive stands alone on its line");
    }
    while (true) {
      const std::size_t open = line.find("${", at);
      if (open == std::string_view::npos) break;
      const std::size_t close = line.find('}', open);
      const int column = static_cast<int>(open) + 1;
      if (close == std::string_view::npos) {
        mistake(line_, column, "'${' without '}' on its line");
        break;
      }
      Name name;
      const Word word{line.substr(open + 2, close - open - 2), column + 2};
      if (read_name(word, name)) {
        parsed.pieces.push_back({std::string(line.substr(at, open - at)), std::move(name)});
      }
      at = close + 1;
    }
    if (at < line.size()) parsed.pieces.push_back({std::string(line.substr(at)), {}});
    return parsed;
  }

  // `if NAME`, `elif NAME` and `if not NAME`.
  Arm parse_arm(const std::vector<Word>& words, int column, std::string text) {
    Arm arm{.line = line_, .text = std::move(text), .condition = {}, .negated = false, .body = {}};
    std::size_t next = 1;
    if (words.size() > 1 && words[1].text == "not") {
      arm.negated = true;
      next = 2;
    }
    if (words.size() != next + 1) {
      mistake(line_, column,
              fmt::format("'{}' takes one name, or 'not' and one name", words[0].text),
              "if a template needs an expression, the plan lacks a field");
      arm.condition.head =
          "_";  // keeps the arm apart from an else; the mistake stops the expansion
      return arm;
    }
    if (!read_name(words[next], arm.condition)) arm.condition.head = "_";
    return arm;
  }

  If parse_if(const std::vector<Word>& words, int column, std::string text) {
    Opener opener{line_, column, text, /*is_if=*/true, /*seen_else=*/false};
    If chain;
    chain.arms.push_back(parse_arm(words, column, std::move(text)));
    while (true) {
      chain.arms.back().body = parse_body(&opener);
      if (closer_.words.empty() || closer_.words[0].text == "end") return chain;
      const std::vector<Word> arm_words = closer_.words;
      if (arm_words[0].text == "elif") {
        chain.arms.push_back(parse_arm(arm_words, closer_.column, closer_.text));
      } else {
        opener.seen_else = true;
        chain.arms.push_back({closer_.line, closer_.text, {}, false, {}});
      }
    }
  }

  For parse_for(const std::vector<Word>& words, int column, std::string text) {
    Opener opener{line_, column, text, /*is_if=*/false, /*seen_else=*/false};
    For loop{line_, std::move(text), {}, column, {}, {}};
    if (words.size() != 4 || words[2].text != "in") {
      mistake(line_, column, "a loop is written 'for VARIABLE in NAME'");
    } else {
      loop.variable_column = words[1].column;
      if (is_template_name(words[1].text)) {
        loop.variable = words[1].text;
      } else {
        mistake(line_, words[1].column, fmt::format("'{}' is not a name", words[1].text));
      }
      read_name(words[3], loop.list);
    }
    loop.body = parse_body(&opener);
    return loop;
  }

  // `when NAME: TEXT`: an `if` around one line.
  void parse_when(const std::vector<Word>& words, std::string_view line, std::size_t indent,
                  std::string text, Body& body) {
    const int column = static_cast<int>(indent) + 1;
    if (words.size() < 3 || !words[1].text.ends_with(':')) {
      mistake(line_, column, "a conditional line is written 'when NAME: TEXT'");
      return;
    }
    Arm arm{.line = line_, .text = std::move(text), .condition = {}, .negated = false, .body = {}};
    const Word name{words[1].text.substr(0, words[1].text.size() - 1), words[1].column};
    if (!read_name(name, arm.condition)) return;
    Line kept = parse_text(line, static_cast<std::size_t>(words[2].column) - 1);
    if (!kept.pieces.empty()) kept.pieces.front().literal.insert(0, line.substr(0, indent));
    arm.body.emplace_back(std::move(kept));
    If chain;
    chain.arms.push_back(std::move(arm));
    body.emplace_back(std::move(chain));
  }

  void parse_include(const std::vector<Word>& words, int column, std::string indentation,
                     Body& body) {
    if (words.size() != 2 || !std::ranges::all_of(words[1].text, is_path_character)) {
      mistake(line_, column, "an include is written 'include fragments/NAME.cu.in'");
      return;
    }
    body.emplace_back(
        Include{line_, words[1].column, std::string(words[1].text), std::move(indentation)});
  }

  // Reads up to the directive that ends the opener's body, or to the end of the file for a null
  // opener.
  Body parse_body(const Opener* opener) {
    Body body;
    std::string_view line;
    while (next_line(line)) {
      if (const std::size_t cr = line.find('\r'); cr != std::string_view::npos) {
        mistake(line_, static_cast<int>(cr) + 1, "carriage return in a template");
        continue;
      }
      const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
      const std::string_view rest = line.substr(indent);
      if (!rest.starts_with(kMark)) {
        body.emplace_back(parse_text(line, 0));
        continue;
      }
      if (rest.starts_with("//%#")) continue;
      const int column = static_cast<int>(indent) + 1;
      const std::vector<Word> words = split(line, indent + kMark.size());
      std::string text(rest.substr(0, rest.find_last_not_of(' ') + 1));
      const std::string_view word = words.empty() ? std::string_view() : words[0].text;
      if (word == "if") {
        body.emplace_back(parse_if(words, column, std::move(text)));
      } else if (word == "for") {
        body.emplace_back(parse_for(words, column, std::move(text)));
      } else if (word == "when") {
        parse_when(words, line, indent, std::move(text), body);
      } else if (word == "include") {
        parse_include(words, column, std::string(line.substr(0, indent)), body);
      } else if (word == "elif" || word == "else" || word == "end") {
        if (closes(opener, words, column)) {
          closer_ = {line_, column, words, std::move(text)};
          return body;
        }
      } else {
        mistake(line_, column, fmt::format("unknown directive '{}'", text),
                "the directives are if, elif, else, end, for, when and include");
      }
    }
    closer_ = {};
    if (opener != nullptr) {
      mistake(opener->line, opener->column, fmt::format("'{}' has no '//% end'", opener->text));
    }
    return body;
  }

  // Whether this elif, else or end ends the opener's body; says what is wrong with it otherwise.
  bool closes(const Opener* opener, const std::vector<Word>& words, int column) {
    const std::string_view word = words[0].text;
    if (word != "elif" && words.size() > 1) {
      mistake(line_, words[1].column, fmt::format("'{}' takes nothing after it", word));
    }
    if (opener == nullptr) {
      mistake(line_, column, fmt::format("stray '{}': no 'if' or 'for' is open", word));
      return false;
    }
    if (word == "end") return true;
    if (!opener->is_if) {
      mistake(line_, column, fmt::format("'{}' inside the 'for' of line {}", word, opener->line));
      return false;
    }
    if (opener->seen_else) {
      mistake(line_, column, fmt::format("'{}' after the 'else' of the same 'if'", word),
              fmt::format("the 'if' is on line {}", opener->line));
      return false;
    }
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 0;
  Template tree_;
  Closer closer_;  // of the body that parse_body read last
};

}  // namespace

Diagnostic template_mistake(std::string path, int line, int column, std::string message,
                            std::string note) {
  return {ErrorCode::kToolchain,
          {std::move(path), line, column},
          "template: " + std::move(message),
          std::move(note)};
}

Template parse_template(std::string path, std::string_view text) {
  return Parser(std::move(path), text).run();
}

bool is_template_name(std::string_view text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  const bool spelled = std::ranges::all_of(
      text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  return spelled && std::ranges::find(kWords, text) == kWords.end();
}

}  // namespace afdep::emit
