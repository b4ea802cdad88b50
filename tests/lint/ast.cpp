#include "tests/lint/ast.h"

#include <memory>
#include <utility>

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Frontend/FrontendOptions.h>
#include <fmt/format.h>
#include <llvm/Support/VirtualFileSystem.h>

#include "templates/embedded.h"

namespace afdep::lint {
namespace {

using Visit = std::function<void(clang::ASTContext&)>;

class Collector : public clang::DiagnosticConsumer {
 public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& info) override {
    DiagnosticConsumer::HandleDiagnostic(level, info);
    if (level < clang::DiagnosticsEngine::Warning) return;
    llvm::SmallString<128> text;
    info.FormatDiagnostic(text);
    Finding finding{{}, "clang: " + text.str().str()};
    if (info.hasSourceManager() && info.getLocation().isValid()) {
      const clang::PresumedLoc at = info.getSourceManager().getPresumedLoc(info.getLocation());
      if (at.isValid()) {
        const std::string_view path = at.getFilename();
        finding.place = {std::string(path.substr(path.starts_with('/') ? 1 : 0)),
                         static_cast<int>(at.getLine()), static_cast<int>(at.getColumn())};
      }
    }
    found.push_back(std::move(finding));
  }

  std::vector<Finding> found;
};

class Consumer : public clang::ASTConsumer {
 public:
  explicit Consumer(const Visit& visit) : visit_(visit) {}
  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!context.getDiagnostics().hasErrorOccurred()) visit_(context);
  }

 private:
  const Visit& visit_;
};

class Action : public clang::ASTFrontendAction {
 public:
  explicit Action(const Visit& visit) : visit_(visit) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&,
                                                        llvm::StringRef) override {
    return std::make_unique<Consumer>(visit_);
  }

 private:
  const Visit& visit_;
};

}  // namespace

std::string to_string(const Finding& finding) {
  return fmt::format("{}:{}:{}: {}", finding.place.file, finding.place.line, finding.place.column,
                     finding.message);
}

std::vector<Finding> parse(const Parse& what, const Visit& visit) {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  files->addFile(what.main.path, 0,
                 llvm::MemoryBuffer::getMemBuffer(what.main.text, what.main.path));
  for (const File& file : what.files) {
    files->addFile(file.path, 0, llvm::MemoryBuffer::getMemBuffer(file.text, file.path));
  }

  std::vector<const char*> arguments;
  for (const std::string& argument : what.arguments) arguments.push_back(argument.c_str());
  arguments.push_back(what.main.path.c_str());

  Collector collector;
  clang::CompilerInstance compiler;
  compiler.createDiagnostics(&collector, /*ShouldOwnClient=*/false);
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arguments,
                                                 compiler.getDiagnostics())) {
    return std::move(collector.found);
  }
  invocation->getDiagnosticOpts().ShowCarets = false;  // nor "1 error generated." on stderr
  invocation->getFrontendOpts().SkipFunctionBodies = what.skip_function_bodies;
  compiler.setInvocation(std::move(invocation));
  // The invocation's warning flags reach the engine only when it is made again.
  compiler.createDiagnostics(&collector, /*ShouldOwnClient=*/false);
  compiler.createFileManager(files);
  Action action(visit);
  if (!compiler.ExecuteAction(action) && collector.found.empty()) {
    collector.found.push_back({{}, "clang: gave up without a diagnostic"});
  }
  return std::move(collector.found);
}

std::vector<File> device_headers() {
  std::vector<File> headers;
  for (const templates::File& file : templates::files()) {
    if (!file.path.starts_with("device/")) continue;
    headers.push_back({"/" + std::string(file.path), std::string(file.text)});
  }
  return headers;
}

std::vector<std::string> emulator_arguments() {
  return {"-triple", "x86_64-pc-linux-gnu", "-x", "c++", "-std=c++20", "-fsyntax-only",
          // The result must not depend on what is installed here.
          "-nostdsysteminc", "-nobuiltininc", "-I", "/device/emulator", "-I", "/device/common",
          "-D", "AFDEP_EMULATOR", "-Wall", "-Wextra"};
}

}  // namespace afdep::lint
