#include "tests/lint/declarations.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Basic/SourceManager.h>
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>

namespace afdep::lint {
namespace {

// "HEADER: DECLARATION".
using Declarations = std::set<std::string>;

class Reader {
 public:
  Reader(clang::ASTContext& context, std::string root, Declarations& found)
      : context_(context), root_(std::move(root)), found_(found), policy_(context.getLangOpts()) {
    policy_.SuppressTagKeyword = true;
    policy_.PrintCanonicalTypes = true;
    policy_.FullyQualifiedName = true;
  }

  void read(const clang::DeclContext& scope) {
    for (const clang::Decl* declaration : scope.decls()) {
      if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) {
        const bool relevant =
            scope.isTranslationUnit() ? space->getName() == "afdep" : space->getName() != "detail";
        if (relevant) read(*space);
        continue;
      }
      if (scope.isTranslationUnit()) continue;  // the emulator's hooks
      const std::string header = header_of(*declaration);
      if (header.empty()) continue;
      if (const std::string text = text_of(*declaration); !text.empty()) {
        found_.insert(header + ": " + text);
      }
    }
  }

 private:
  // Below the side's root; empty for a header that both sides share.
  std::string header_of(const clang::Decl& declaration) const {
    const clang::SourceManager& sources = context_.getSourceManager();
    const llvm::StringRef file =
        sources.getFilename(sources.getExpansionLoc(declaration.getLocation()));
    if (!file.starts_with(root_)) return {};
    return file.substr(root_.size()).str();
  }

  std::string type(clang::QualType of) const { return of.getCanonicalType().getAsString(policy_); }

  std::string parameters_of(const clang::TemplateDecl& declaration) const {
    std::string text;
    for (const clang::NamedDecl* parameter : *declaration.getTemplateParameters()) {
      text += text.empty() ? "" : ", ";
      if (const auto* value = llvm::dyn_cast<clang::NonTypeTemplateParmDecl>(parameter)) {
        text += type(value->getType());
      } else {
        text += llvm::isa<clang::TemplateTypeParmDecl>(parameter) ? "typename" : "template";
      }
      text += parameter->isParameterPack() ? "..." : "";
    }
    return "template<" + text + "> ";
  }

  std::string function(const clang::FunctionDecl& declaration) const {
    std::string parameters;
    for (const clang::ParmVarDecl* parameter : declaration.parameters()) {
      parameters += (parameters.empty() ? "" : ", ") + type(parameter->getType());
      // The value is part of what a caller may write.
      if (parameter->hasDefaultArg()) parameters += " = default";
    }
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&declaration);
    return fmt::format("{} {}({}){}", type(declaration.getReturnType()),
                       declaration.getQualifiedNameAsString(), parameters,
                       method != nullptr && method->isConst() ? " const" : "");
  }

  std::string record(const clang::CXXRecordDecl& declaration) const {
    std::string members;
    for (const clang::Decl* member : declaration.decls()) {
      if (member->isImplicit()) continue;
      if (const std::string text = text_of(*member); !text.empty()) members += text + "; ";
    }
    return fmt::format("{} {} {{ {}}}", declaration.getKindName().str(),
                       declaration.getQualifiedNameAsString(), members);
  }

  std::string text_of(const clang::Decl& declaration) const {
    if (const auto* of = llvm::dyn_cast<clang::TemplateDecl>(&declaration)) {
      const clang::NamedDecl* inner = of->getTemplatedDecl();
      return parameters_of(*of) +
             (inner == nullptr ? of->getQualifiedNameAsString() : text_of(*inner));
    }
    if (const auto* of = llvm::dyn_cast<clang::FunctionDecl>(&declaration)) return function(*of);
    if (const auto* of = llvm::dyn_cast<clang::CXXRecordDecl>(&declaration)) {
      return of->isThisDeclarationADefinition() ? record(*of) : std::string();
    }
    if (const auto* of = llvm::dyn_cast<clang::EnumDecl>(&declaration)) {
      std::string names;
      for (const clang::EnumConstantDecl* value : of->enumerators()) {
        llvm::SmallString<20> number;
        value->getInitVal().toString(number);
        names += fmt::format("{} = {}; ", value->getName().str(), number.str().str());
      }
      return fmt::format("enum {} : {} {{ {}}}", of->getQualifiedNameAsString(),
                         type(of->getIntegerType()), names);
    }
    if (const auto* of = llvm::dyn_cast<clang::TypedefNameDecl>(&declaration)) {
      return fmt::format("using {} = {}", of->getQualifiedNameAsString(),
                         type(of->getUnderlyingType()));
    }
    if (const auto* of = llvm::dyn_cast<clang::ValueDecl>(&declaration)) {  // constants and fields
      return fmt::format("{} {}", type(of->getType()), of->getQualifiedNameAsString());
    }
    return {};
  }

  clang::ASTContext& context_;
  std::string root_;
  Declarations& found_;
  clang::PrintingPolicy policy_;
};

// Makes the headers of device/cuda plain C++: their bodies are not read, so only the keywords
// matter.
std::vector<std::string> cuda_arguments() {
  return {"-triple",
          "x86_64-pc-linux-gnu",
          "-x",
          "c++",
          "-std=c++20",
          "-fsyntax-only",
          "-nostdsysteminc",
          "-nobuiltininc",
          "-I",
          "/device/cuda",
          "-I",
          "/device/common",
          "-D",
          "__CUDACC_RTC__",
          "-D",
          "__device__=",
          "-D",
          "__host__=",
          "-D",
          "__forceinline__=inline",
          "-D",
          "__noinline__="};
}

std::set<std::string> headers_below(const std::vector<File>& headers, const std::string& root) {
  std::set<std::string> found;
  for (const File& header : headers) {
    if (header.path.starts_with(root)) found.insert(header.path.substr(root.size()));
  }
  return found;
}

void read_side(const std::vector<File>& headers, const std::string& root,
               const std::vector<std::string>& arguments, Declarations& declarations,
               std::vector<std::string>& differences) {
  std::string text;
  for (const std::string& header : headers_below(headers, root)) {
    text += "#include \"" + header + "\"\n";
  }
  const std::vector<Finding> said =
      parse({.main = {"/all.cpp", text},
             .files = headers,
             .arguments = arguments,
             .skip_function_bodies = true},
            [&](clang::ASTContext& context) {
              Reader(context, root, declarations).read(*context.getTranslationUnitDecl());
            });
  for (const Finding& finding : said) differences.push_back(to_string(finding));
}

void report_missing(const std::set<std::string>& from, const std::set<std::string>& in,
                    std::string_view side, std::vector<std::string>& differences) {
  for (const std::string& each : from) {
    if (!in.contains(each)) differences.push_back(fmt::format("only in {}: {}", side, each));
  }
}

}  // namespace

std::vector<std::string> declaration_differences(const std::vector<File>& headers) {
  const std::string cuda_root = "/device/cuda/";
  const std::string emulator_root = "/device/emulator/";
  std::vector<std::string> differences;
  const auto cuda_headers = headers_below(headers, cuda_root);
  const auto emulator_headers = headers_below(headers, emulator_root);
  report_missing(cuda_headers, emulator_headers, "device/cuda", differences);
  report_missing(emulator_headers, cuda_headers, "device/emulator", differences);

  Declarations cuda;
  Declarations emulator;
  read_side(headers, cuda_root, cuda_arguments(), cuda, differences);
  read_side(headers, emulator_root, emulator_arguments(), emulator, differences);
  report_missing(cuda, emulator, "device/cuda", differences);
  report_missing(emulator, cuda, "device/emulator", differences);
  return differences;
}

}  // namespace afdep::lint
