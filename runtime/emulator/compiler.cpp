#include "runtime/emulator/compiler.h"

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/Decl.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/DiagnosticLex.h>
#include <clang/Basic/DiagnosticSema.h>
#include <clang/Basic/SourceManager.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <fmt/format.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/TargetParser/Host.h>

#include "runtime/emulator/hooks.h"
#include "runtime/emulator/instrument.h"
#include "templates/embedded.h"

namespace afdep::emulator {
namespace {

constexpr std::string_view kRun = "afdep_emu_run";
constexpr std::string_view kArgsBytes = "afdep_emu_args_bytes";
constexpr std::string_view kTimeout = "afdep_emu_timeout_ns";
constexpr std::string_view kGeneration = "afdep_emu_generation";

// Follows the kernel's text: what the scheduler needs to know of it, whatever its argument struct
// is.
std::string entry_points(std::string_view symbol) {
  return fmt::format(R"(
#line 1 "entry points of {0}"
#include "afdep/generation.h"
namespace afdep::emulator {{
template <typename Args>
constexpr unsigned long args_bytes(void (*)(Args)) {{ return sizeof(Args); }}
template <typename Args>
void run(void (*kernel)(Args), const void* args) {{ kernel(*static_cast<const Args*>(args)); }}
template <typename Args>
unsigned long timeout_ns(void (*)(Args), const void* args) {{
  if constexpr (requires(const Args& a) {{ a.common.timeout_ns; }}) {{
    return static_cast<const Args*>(args)->common.timeout_ns;
  }} else {{
    return 0;
  }}
}}
// Kernels that open an exchange read `finished`, those that complete it `started`.
template <typename Args>
unsigned generation(void (*)(Args), const void* args) {{
  if constexpr (requires(const Args& a) {{ a.common.control->finished; }}) {{
    const Args& a = *static_cast<const Args*>(args);
    if (a.common.control == nullptr) return 0;
    if constexpr (requires {{ a.ids; }} || requires {{ a.ends; }}) {{
      return next_generation(a.common.control->finished);
    }} else {{
      return a.common.control->started;
    }}
  }} else {{
    return 0;
  }}
}}
}}
extern "C" void {1}(const void* args) {{ afdep::emulator::run(&{0}, args); }}
extern "C" unsigned long {2}() {{ return afdep::emulator::args_bytes(&{0}); }}
extern "C" unsigned long {3}(const void* args) {{ return afdep::emulator::timeout_ns(&{0}, args); }}
extern "C" unsigned {4}(const void* args) {{ return afdep::emulator::generation(&{0}, args); }}
)",
                     symbol, kRun, kArgsBytes, kTimeout, kGeneration);
}

Place place_at(const clang::SourceManager& sources, clang::SourceLocation location) {
  if (location.isInvalid()) return {};
  const clang::PresumedLoc at = sources.getPresumedLoc(location);
  if (at.isInvalid()) return {};
  return {at.getFilename(), static_cast<int>(at.getLine()), static_cast<int>(at.getColumn())};
}

// CUDA's own names and headers: a raw construct that somebody wrote into the text.
bool is_unknown_name(unsigned id) {
  return id == clang::diag::err_undeclared_var_use ||
         id == clang::diag::err_undeclared_var_use_suggest ||
         id == clang::diag::err_unknown_typename ||
         id == clang::diag::err_unknown_typename_suggest ||
         id == clang::diag::err_pp_file_not_found;
}

// Keeps what Clang says, notes folded into the diagnostic that they explain.
class Collector : public clang::DiagnosticConsumer {
 public:
  void HandleDiagnostic(clang::DiagnosticsEngine::Level level,
                        const clang::Diagnostic& info) override {
    clang::DiagnosticConsumer::HandleDiagnostic(level, info);
    llvm::SmallString<128> text;
    info.FormatDiagnostic(text);
    Place place;
    if (info.hasSourceManager()) place = place_at(info.getSourceManager(), info.getLocation());
    if (level == clang::DiagnosticsEngine::Note && !found.empty()) {
      std::string& note = found.back().note;
      if (!note.empty()) note += "; ";
      note += fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, text.str().str());
      return;
    }
    if (level < clang::DiagnosticsEngine::Warning) return;
    found.push_back({ErrorCode::kToolchain, std::move(place), text.str().str(),
                     is_unknown_name(info.getID()) ? std::string(kOnlyDeviceHeaders) : ""});
  }

  Diagnostics found;
};

// Refuses declarations that have no place any more in LLVM IR: assembly outside functions,
// variables that outlive a thread, and CUDA's memory spaces.
class Declarations : public clang::ASTConsumer {
 public:
  explicit Declarations(Diagnostics& refused) : refused_(&refused) {}

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (const clang::Decl* const each : group) look_at(*each);
    return true;
  }

 private:
  void look_at(const clang::Decl& declaration) {
    if (llvm::isa<clang::FileScopeAsmDecl>(declaration)) {
      refuse(declaration, "assembly outside functions");
    }
    const auto* const space = declaration.getAttr<clang::AnnotateAttr>();
    const auto* const named = llvm::dyn_cast<clang::NamedDecl>(&declaration);
    if (space != nullptr && named != nullptr && space->getAnnotation().starts_with("__")) {
      refuse(declaration, fmt::format("{} of {}", std::string_view(space->getAnnotation()),
                                      named->getNameAsString()));
    } else if (const auto* const variable = llvm::dyn_cast<clang::VarDecl>(&declaration)) {
      const bool constant =
          variable->getType().isConstantStorage(variable->getASTContext(), true, false) &&
          variable->hasConstantInitialization();
      if (variable->hasGlobalStorage() && !constant) {
        refuse(declaration, fmt::format("the variable {}, which all ranks would share",
                                        variable->getNameAsString()));
      }
    }
    if (const auto* const context = llvm::dyn_cast<clang::DeclContext>(&declaration)) {
      for (const clang::Decl* const each : context->decls()) look_at(*each);
    }
  }

  void refuse(const clang::Decl& declaration, std::string_view what) {
    refused_->push_back(unknown_construct(
        what, place_at(declaration.getASTContext().getSourceManager(), declaration.getLocation())));
  }

  Diagnostics* refused_;
};

class ToIr : public clang::EmitLLVMOnlyAction {
 public:
  ToIr(llvm::LLVMContext& context, Diagnostics& refused)
      : EmitLLVMOnlyAction(&context), refused_(&refused) {}

 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef file) override {
    std::vector<std::unique_ptr<clang::ASTConsumer>> both;
    both.push_back(std::make_unique<Declarations>(*refused_));
    both.push_back(EmitLLVMOnlyAction::CreateASTConsumer(compiler, file));
    return std::make_unique<clang::MultiplexConsumer>(std::move(both));
  }

 private:
  Diagnostics* refused_;
};

struct Replaced {
  std::mutex mutex;
  std::vector<HeaderText> headers;
};
Replaced& replaced() {
  static Replaced all;
  return all;
}

// The device headers, as files below /device/emulator and /device/common.
llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> device_headers() {
  auto files = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  files->setCurrentWorkingDirectory("/");
  for (const templates::File& file : templates::files()) {
    if (!file.path.starts_with("device/")) continue;
    std::unique_ptr<llvm::MemoryBuffer> text =
        llvm::MemoryBuffer::getMemBuffer(file.text, file.path);
    for (const HeaderText& header : replaced().headers) {
      if (header.path == file.path) {
        text = llvm::MemoryBuffer::getMemBufferCopy(header.text, header.path);
      }
    }
    files->addFile("/" + std::string(file.path), 0, std::move(text));
  }
  return files;
}

std::string text_of(llvm::Error error) { return llvm::toString(std::move(error)); }

struct Parsed {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
};

Result<Parsed> to_ir(const std::string& source_name, const std::string& text) {
  const auto files = device_headers();
  files->addFile("/" + source_name, 0, llvm::MemoryBuffer::getMemBuffer(text, source_name));

  const std::string triple = llvm::sys::getProcessTriple();
  const std::vector<const char*> arguments{
      "-triple", triple.c_str(), "-x", "c++", "-std=c++20", "-O1", "-disable-llvm-passes",
      "-ffp-contract=off",
      // The text must not depend on what is installed here.
      "-nostdsysteminc", "-nobuiltininc", "-I", "/device/emulator", "-I", "/device/common", "-D",
      "AFDEP_EMULATOR",
      // CUDA's own places of variables and functions, for Declarations to refuse.
      "-D", "__shared__=__attribute__((annotate(\"__shared__\")))", "-D",
      "__device__=__attribute__((annotate(\"__device__\")))", "-D",
      "__constant__=__attribute__((annotate(\"__constant__\")))", "-D",
      "__managed__=__attribute__((annotate(\"__managed__\")))", "-Wall", "-Wextra",
      // Whether a loop could be unrolled is a matter of the GPU's compiler.
      "-Wno-pass-failed",
      // For reports; the machine code carries none of it.
      "-debug-info-kind=line-tables-only", "-dwarf-version=5",
      // Prints no count of errors.
      "-fno-caret-diagnostics", "-mrelocation-model", "pic", "-pic-level", "2", "-fno-rtti",
      source_name.c_str()};

  auto collector = std::make_unique<Collector>();
  clang::CompilerInstance compiler;
  compiler.createDiagnostics(collector.get(), /*ShouldOwnClient=*/false);
  auto invocation = std::make_shared<clang::CompilerInvocation>();
  if (!clang::CompilerInvocation::CreateFromArgs(*invocation, arguments,
                                                 compiler.getDiagnostics())) {
    return Failure(std::move(collector->found));
  }
  compiler.setInvocation(std::move(invocation));
  // The invocation's warning flags reach the engine only when it is made again.
  compiler.createDiagnostics(collector.get(), /*ShouldOwnClient=*/false);
  compiler.createFileManager(files);

  Parsed parsed{std::make_unique<llvm::LLVMContext>(), nullptr};
  ToIr action(*parsed.context, collector->found);
  const bool ran = compiler.ExecuteAction(action);
  if (!collector->found.empty()) return Failure(std::move(collector->found));
  parsed.module = action.takeModule();
  if (!ran || parsed.module == nullptr) {
    return Failure(ErrorCode::kToolchain,
                   fmt::format("{}: Clang gave up without a diagnostic", source_name));
  }
  AFDEP_RETURN_IF_FAILED(instrument(*parsed.module, source_name));
  return parsed;
}

class Jit {
 public:
  static Result<Jit*> instance() {
    static Result<Jit*> made = make();
    return made;
  }

  Result<const CompiledKernel*> compile(const std::string& source_name, const std::string& symbol,
                                        std::string_view source) {
    const std::scoped_lock lock(mutex_);
    // Name, symbol and text: the name shows in messages, so it belongs to the key.
    std::string key = fmt::format("{}\n{}\n{}", source_name, symbol, source);
    const std::scoped_lock headers_lock(replaced().mutex);
    for (const HeaderText& header : replaced().headers) key += "\n" + header.path + header.text;
    if (const auto found = kernels_.find(key); found != kernels_.end()) return &found->second;

    auto parsed = to_ir(source_name, std::string(source) + entry_points(symbol));
    if (!parsed) return parsed.failure();
    auto kernel = link(std::move(*parsed));
    if (!kernel) {
      return Failure(ErrorCode::kToolchain,
                     fmt::format("{}: cannot link {}: {}", source_name, symbol,
                                 session_errors_ + text_of(kernel.takeError())),
                     "an emitted kernel may call nothing but the device headers");
    }
    return &kernels_.emplace(std::move(key), *kernel).first->second;
  }

 private:
  explicit Jit(std::unique_ptr<llvm::orc::LLJIT> jit, llvm::orc::JITDylib& hooks)
      : jit_(std::move(jit)), hooks_(hooks) {
    // The session knows the cause, a lookup only that it failed.
    jit_->getExecutionSession().setErrorReporter(
        [this](llvm::Error error) { session_errors_ += text_of(std::move(error)) + "; "; });
  }

  // Never destroyed: kernels live as long as the process.
  static Result<Jit*> make() {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    const auto fail = [](llvm::Error error) {
      return Failure(
          ErrorCode::kToolchain,
          fmt::format("the emulator's JIT does not start: {}", text_of(std::move(error))),
          "the emulator needs LLVM 19 with the target of this machine");
    };
    // The baseline of the architecture, so that every machine computes the same.
    llvm::orc::JITTargetMachineBuilder target{llvm::Triple(llvm::sys::getProcessTriple())};
    // Kernels run for milliseconds: what takes time is compiling them.
    target.setCodeGenOptLevel(llvm::CodeGenOptLevel::None);
    target.setRelocationModel(llvm::Reloc::PIC_);
    auto jit = llvm::orc::LLJITBuilder().setJITTargetMachineBuilder(std::move(target)).create();
    if (!jit) return fail(jit.takeError());
    llvm::orc::JITDylib& hooks = (*jit)->getExecutionSession().createBareJITDylib("hooks");
    llvm::orc::SymbolMap symbols;
    for (const Hook& hook : emulator::hooks()) {
      symbols[(*jit)->mangleAndIntern(hook.name)] = {
          llvm::orc::ExecutorAddr::fromPtr(hook.address),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    }
    if (auto error = hooks.define(llvm::orc::absoluteSymbols(std::move(symbols)))) {
      return fail(std::move(error));
    }
    return new Jit(std::move(*jit), hooks);
  }

  // Each kernel has its own name space: several sources define the same symbols.
  llvm::Expected<CompiledKernel> link(Parsed parsed) {
    session_errors_.clear();
    llvm::orc::JITDylib& space =
        jit_->getExecutionSession().createBareJITDylib(fmt::format("kernel {}", name_spaces_++));
    space.addToLinkOrder(hooks_);
    if (auto error = jit_->addIRModule(
            space,
            llvm::orc::ThreadSafeModule(std::move(parsed.module), std::move(parsed.context)))) {
      return error;
    }
    CompiledKernel kernel;
    auto run = jit_->lookup(space, kRun);
    if (!run) return run.takeError();
    kernel.run = run->toPtr<void (*)(const void*)>();
    auto bytes = jit_->lookup(space, kArgsBytes);
    if (!bytes) return bytes.takeError();
    kernel.args_bytes = bytes->toPtr<std::uint64_t (*)()>()();
    auto timeout = jit_->lookup(space, kTimeout);
    if (!timeout) return timeout.takeError();
    kernel.timeout_ns = timeout->toPtr<std::uint64_t (*)(const void*)>();
    auto generation = jit_->lookup(space, kGeneration);
    if (!generation) return generation.takeError();
    kernel.generation = generation->toPtr<std::uint32_t (*)(const void*)>();
    return kernel;
  }

  std::unique_ptr<llvm::orc::LLJIT> jit_;
  llvm::orc::JITDylib& hooks_;
  std::mutex mutex_;
  std::unordered_map<std::string, CompiledKernel> kernels_;  // by name, symbol and text
  std::size_t name_spaces_ = 0;
  std::string session_errors_;  // of the newest link
};

}  // namespace

Result<const CompiledKernel*> compile(std::string_view source_name, std::string_view symbol,
                                      std::string_view source) {
  auto jit = Jit::instance();
  if (!jit) return jit.failure();
  return (*jit)->compile(std::string(source_name), std::string(symbol), source);
}

void replace_device_headers(std::vector<HeaderText> headers) {
  const std::scoped_lock lock(replaced().mutex);
  replaced().headers = std::move(headers);
}

}  // namespace afdep::emulator
