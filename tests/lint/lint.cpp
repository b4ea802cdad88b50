#include "tests/lint/lint.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include <clang/AST/ASTContext.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Lex/Lexer.h>
#include <fmt/format.h>

namespace afdep::lint {
namespace {

constexpr const char* kWhere = "it belongs into templates/device/cuda";

// What is wrong with an identifier in emitted text; empty if nothing.
std::string complaint_about(std::string_view name) {
  constexpr std::array<std::string_view, 3> kKeywords = {"__global__", "__launch_bounds__",
                                                         "__grid_constant__"};
  constexpr std::array<std::string_view, 5> kBuiltIns = {"threadIdx", "blockIdx", "blockDim",
                                                         "gridDim", "warpSize"};
  constexpr std::array<std::string_view, 3> kAssembly = {"asm", "__asm", "__asm__"};
  constexpr std::array<std::string_view, 3> kAtomics = {"__atomic", "__sync_", "__nv_atomic"};
  const auto starts_name = [name](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::ranges::count(kKeywords, name) != 0) return {};
  if (std::ranges::count(kAssembly, name) != 0) return fmt::format("inline assembly; {}", kWhere);
  const bool cuda_atomic = name.starts_with("atomic") && (name.size() == 6 || name[6] == '_' ||
                                                          (name[6] >= 'A' && name[6] <= 'Z'));
  if (cuda_atomic || std::ranges::any_of(kAtomics, starts_name)) {
    return fmt::format("raw atomic '{}'; {}", name, kWhere);
  }
  if (std::ranges::count(kBuiltIns, name) != 0) {
    return fmt::format("CUDA built-in '{}'; {}", name, kWhere);
  }
  if (name.starts_with("__")) return fmt::format("reserved name '{}'; {}", name, kWhere);
  return {};
}

// Tokens before preprocessing, so that a rule holds for text that does not even parse.
class TokenRules {
 public:
  TokenRules(const std::string& file_name, const std::string& text, std::vector<Finding>& found)
      : file_name_(file_name), text_(text), found_(found) {}

  void run() {
    clang::LangOptions options;
    options.CPlusPlus = options.CPlusPlus20 = true;
    const char* begin = text_.c_str();
    clang::Lexer lexer(clang::SourceLocation(), options, begin, begin, begin + text_.size());
    clang::Token token;
    bool at_directive = false;
    while (true) {
      lexer.LexFromRawLexer(token);
      if (token.is(clang::tok::eof)) return;
      const std::size_t end = static_cast<std::size_t>(lexer.getBufferLocation() - begin);
      const std::size_t at = end - token.getLength();
      if (token.is(clang::tok::hash) && token.isAtStartOfLine()) {
        at_directive = true;
        continue;
      }
      if (token.is(clang::tok::raw_identifier)) {
        const llvm::StringRef raw = token.getRawIdentifier();
        const std::string_view name(raw.data(), raw.size());
        if (!std::exchange(at_directive, false)) {
          if (std::string what = complaint_about(name); !what.empty()) add(at, std::move(what));
        } else if (name != "include" && name != "pragma") {
          add(at, fmt::format("preprocessor directive #{}", name));
        }
      }
      at_directive = false;
    }
  }

 private:
  void add(std::size_t at, std::string message) {
    const std::string_view before(text_.data(), at);
    const std::size_t line_start = before.rfind('\n') + 1;  // 0 if there is none
    found_.push_back({{file_name_, static_cast<int>(std::ranges::count(before, '\n')) + 1,
                       static_cast<int>(at - line_start) + 1},
                      std::move(message)});
  }

  const std::string& file_name_;
  const std::string& text_;
  std::vector<Finding>& found_;
};

class TreeRules : public clang::RecursiveASTVisitor<TreeRules> {
 public:
  TreeRules(clang::ASTContext& context, std::string file_name, std::vector<Finding>& found)
      : context_(context),
        sources_(context.getSourceManager()),
        file_name_(std::move(file_name)),
        found_(found) {}

  bool VisitIfStmt(clang::IfStmt* statement) {
    return check_condition(statement->getCond(), statement->isConstexpr() ? "if constexpr" : "if");
  }
  bool VisitWhileStmt(clang::WhileStmt* statement) {
    return check_condition(statement->getCond(), "while");
  }
  bool VisitDoStmt(clang::DoStmt* statement) { return check_condition(statement->getCond(), "do"); }
  bool VisitForStmt(clang::ForStmt* statement) {
    return check_condition(statement->getCond(), "for");
  }
  bool VisitSwitchStmt(clang::SwitchStmt* statement) {
    return check_condition(statement->getCond(), "switch");
  }
  bool VisitConditionalOperator(clang::ConditionalOperator* expression) {
    return check_condition(expression->getCond(), "?:");
  }
  bool VisitBinaryOperator(clang::BinaryOperator* expression) {
    if (!expression->isLogicalOp()) return true;
    const std::string name = expression->getOpcodeStr().str();
    check_condition(expression->getLHS(), "operand of " + name);
    return check_condition(expression->getRHS(), "operand of " + name);
  }

  bool VisitVarDecl(clang::VarDecl* variable) {
    if (variable->isFileVarDecl() && variable->getType().isConstQualified() &&
        !variable->isReferenced()) {
      add(variable->getLocation(), fmt::format("unused constant '{}'", variable->getName().str()));
    }
    return true;
  }

  // Assembly and atomics that a macro of a header brings; those in the text itself are found by
  // their names.
  bool VisitAsmStmt(clang::AsmStmt* statement) {
    add_from_macro(statement->getAsmLoc(), "inline assembly from a macro");
    return true;
  }
  bool VisitAtomicExpr(clang::AtomicExpr* expression) {
    add_from_macro(expression->getBuiltinLoc(), "raw atomic from a macro");
    return true;
  }

 private:
  bool check_condition(const clang::Expr* condition, const std::string& what) {
    if (condition == nullptr || condition->isValueDependent()) return true;
    clang::Expr::EvalResult result;
    // Also folds where only one operand decides, as in `f() && false`.
    if (!condition->EvaluateAsRValue(result, context_)) return true;
    add(condition->getBeginLoc(),
        fmt::format("condition of {} is always {}", what,
                    result.Val.getAsString(context_, condition->getType())));
    return true;
  }

  void add_from_macro(clang::SourceLocation at, const char* what) {
    if (at.isMacroID()) add(at, fmt::format("{}; {}", what, kWhere));
  }

  void add(clang::SourceLocation where, std::string message) {
    const clang::SourceLocation at = sources_.getExpansionLoc(where);
    if (!sources_.isInMainFile(at)) return;
    found_.push_back({{file_name_, static_cast<int>(sources_.getExpansionLineNumber(at)),
                       static_cast<int>(sources_.getExpansionColumnNumber(at))},
                      std::move(message)});
  }

  clang::ASTContext& context_;
  clang::SourceManager& sources_;
  std::string file_name_;
  std::vector<Finding>& found_;
};

}  // namespace

std::vector<Finding> lint_emitted(const std::string& file_name, const std::string& text,
                                  const std::vector<File>& headers) {
  std::vector<Finding> found;
  TokenRules(file_name, text, found).run();
  std::vector<std::string> arguments = emulator_arguments();
  arguments.push_back("-Wno-unused-const-variable");  // found by a rule of its own
  const std::vector<Finding> said =
      parse({.main = {"/" + file_name, text}, .files = headers, .arguments = std::move(arguments)},
            [&](clang::ASTContext& context) {
              TreeRules(context, file_name, found).TraverseDecl(context.getTranslationUnitDecl());
            });
  found.insert(found.end(), said.begin(), said.end());
  const auto order = [](const Finding& finding) {
    return std::tie(finding.place.file, finding.place.line, finding.place.column, finding.message);
  };
  std::ranges::sort(found, {}, order);
  const auto repeated = std::ranges::unique(found);
  found.erase(repeated.begin(), repeated.end());
  return found;
}

}  // namespace afdep::lint
