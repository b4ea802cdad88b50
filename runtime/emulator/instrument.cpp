#include "runtime/emulator/instrument.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "runtime/emulator/hooks.h"
#include "runtime/emulator/sites.h"

namespace afdep::emulator {
namespace {

constexpr std::string_view kHookPrefix = "afdep_emu_";
constexpr std::string_view kEntryPoints = "entry points of ";
constexpr llvm::StringLiteral kRun("afdep_emu_run");

bool is_hook(const llvm::Function& function) {
  if (!function.isDeclaration()) return false;
  static const auto* const kNames = [] {
    auto* const names = new std::unordered_map<std::string_view, bool>;
    for (const Hook& hook : hooks()) names->emplace(hook.name, true);
    return names;
  }();
  return kNames->contains(std::string_view(function.getName()));
}

bool is_entry_point(const llvm::Function& function) {
  const llvm::DISubprogram* const program = function.getSubprogram();
  return program != nullptr && program->getFilename().contains(kEntryPoints);
}

// "/device/emulator/afdep/wait.cuh" is known to readers as "afdep/wait.cuh".
std::string header_name(llvm::StringRef file) {
  const std::size_t at = file.find("afdep/");
  return (at == llvm::StringRef::npos ? file : file.substr(at)).str();
}

// ---- the first pass -----------------------------------------------------------------------------

// Why the emulator cannot run `instruction`; empty if it can.
std::string refusal(const llvm::Instruction& instruction) {
  if (instruction.isAtomic()) return "an atomic operation outside the device headers";
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) return {};
  if (const auto* const text = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand())) {
    return fmt::format("inline assembly \"{}\"", std::string_view(text->getAsmString()));
  }
  const llvm::Function* const callee = call->getCalledFunction();
  if (callee == nullptr) return "a call through a pointer";
  if (!callee->isDeclaration() || is_hook(*callee)) return {};
  const std::string_view name(callee->getName());
  if (!callee->isIntrinsic()) return fmt::format("a call of the unknown function {}", name);
  switch (callee->getIntrinsicID()) {
    case llvm::Intrinsic::memcpy:
    case llvm::Intrinsic::memcpy_inline:
    case llvm::Intrinsic::memmove:
    case llvm::Intrinsic::memset:
    case llvm::Intrinsic::memset_inline:
    case llvm::Intrinsic::assume:
    case llvm::Intrinsic::stacksave:
    case llvm::Intrinsic::stackrestore:
    case llvm::Intrinsic::var_annotation:
    case llvm::Intrinsic::experimental_noalias_scope_decl:
      return {};
    default:
      break;
  }
  const auto* const intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(call);
  const bool harmless =
      intrinsic != nullptr && (intrinsic->isAssumeLikeIntrinsic() || call->doesNotAccessMemory());
  if (harmless && !callee->isTargetIntrinsic()) return {};
  return fmt::format("the built-in {}", name);
}

class Refuse : public llvm::PassInfoMixin<Refuse> {
 public:
  Refuse(std::string source_name, Diagnostics& refused)
      : source_name_(std::move(source_name)), refused_(&refused) {}

  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& /*manager*/) {
    for (const llvm::GlobalVariable& variable : module.globals()) {
      if (variable.isConstant() || variable.getName().starts_with("llvm.")) continue;
      refuse(fmt::format("the variable {}, which all ranks would share",
                         std::string_view(variable.getName())),
             Place{});
    }
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) {
        // A call keeps its own place in the text.
        if (is_hook(function)) function.addFnAttr(llvm::Attribute::NoMerge);
        continue;
      }
      for (const llvm::Instruction& instruction : llvm::instructions(function)) {
        if (is_entry_point(function)) break;
        const std::string why = refusal(instruction);
        if (!why.empty()) refuse(why, place_of(instruction));
      }
      // As NVRTC does; and a call that is not inlined does not say where it was called from.
      if (!function.hasFnAttribute(llvm::Attribute::NoInline) &&
          !function.hasFnAttribute(llvm::Attribute::OptimizeNone)) {
        function.addFnAttr(llvm::Attribute::AlwaysInline);
      }
    }
    return llvm::PreservedAnalyses::none();
  }

  static bool isRequired() { return true; }  // NOLINT(readability-identifier-naming): LLVM asks

 private:
  Place place_of(const llvm::Instruction& instruction) const {
    const llvm::DILocation* const at = instruction.getDebugLoc();
    if (at == nullptr) return {source_name_, 0, 0};
    return {header_name(at->getFilename()), static_cast<int>(at->getLine()),
            static_cast<int>(at->getColumn())};
  }

  void refuse(const std::string& what, Place place) const {
    if (place.file.empty()) place.file = source_name_;
    refused_->push_back(unknown_construct(what, std::move(place)));
  }

  std::string source_name_;
  Diagnostics* refused_;
};

// ---- the second pass ----------------------------------------------------------------------------

class Instrument : public llvm::PassInfoMixin<Instrument> {
 public:
  explicit Instrument(std::string source_name) : source_name_(std::move(source_name)) {}

  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& /*manager*/) {
    announce_raw_accesses(module);
    number_calls(module);
    llvm::StripDebugInfo(module);
    return llvm::PreservedAnalyses::none();
  }

  static bool isRequired() { return true; }  // NOLINT(readability-identifier-naming): LLVM asks

 private:
  Site site_of(const llvm::Instruction& instruction) {
    const llvm::DILocation* const innermost = instruction.getDebugLoc();
    if (innermost == nullptr) return 0;
    const auto [known, fresh] = sites_.try_emplace(innermost, 0);
    if (!fresh) return known->second;
    const llvm::DILocation* emitted = innermost;
    while (emitted != nullptr && emitted->getFilename() != source_name_) {
      emitted = emitted->getInlinedAt();
    }
    SiteText text;
    const llvm::DILocation* const shown = emitted != nullptr ? emitted : innermost;
    text.place = fmt::format("{}:{}:{}", header_name(shown->getFilename()), shown->getLine(),
                             shown->getColumn());
    if (shown != innermost) {
      text.device = fmt::format("{}, {}:{}",
                                std::string_view(innermost->getScope()->getSubprogram()->getName()),
                                header_name(innermost->getFilename()), innermost->getLine());
    }
    return known->second = add_site(std::move(text));
  }

  // True if `pointer` can lead nowhere but into this function's own variables, constants or the
  // kernel's arguments.
  static bool is_private(const llvm::Value* pointer, const llvm::Function& function) {
    llvm::SmallVector<const llvm::Value*, 4> objects;
    llvm::getUnderlyingObjects(pointer, objects);
    for (const llvm::Value* const object : objects) {
      if (llvm::isa<llvm::AllocaInst>(object)) continue;
      if (const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(object)) {
        if (variable->isConstant()) continue;
        return false;
      }
      // The entry point's argument: the argument struct.
      if (llvm::isa<llvm::Argument>(object) && function.getName() == kRun) continue;
      // A struct passed by value.
      if (const auto* const argument = llvm::dyn_cast<llvm::Argument>(object)) {
        if (argument->hasByValAttr() || argument->hasStructRetAttr()) continue;
      }
      return false;
    }
    return true;
  }

  void announce_raw_accesses(llvm::Module& module) {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* const none = llvm::Type::getVoidTy(context);
    llvm::Type* const pointer_type = llvm::PointerType::getUnqual(context);
    llvm::Type* const size_type = llvm::Type::getInt64Ty(context);
    const auto declare = [&](const char* name) {
      return module.getOrInsertFunction(name, none, pointer_type, size_type);
    };
    const llvm::FunctionCallee loads = declare("afdep_emu_raw_load");
    const llvm::FunctionCallee stores = declare("afdep_emu_raw_store");
    const llvm::DataLayout& layout = module.getDataLayout();
    for (llvm::Function& function : module) {
      // The entry points but the one that a thread begins with are the scheduler's own.
      if (function.getName().starts_with(kHookPrefix) && function.getName() != kRun) continue;
      std::vector<llvm::Instruction*> found;
      for (llvm::Instruction& instruction : llvm::instructions(function)) {
        if (llvm::isa<llvm::LoadInst, llvm::StoreInst, llvm::MemIntrinsic>(instruction)) {
          found.push_back(&instruction);
        }
      }
      for (llvm::Instruction* const instruction : found) {
        llvm::IRBuilder<> builder(instruction);
        const auto announce = [&](const llvm::FunctionCallee& hook, llvm::Value* at,
                                  llvm::Value* bytes) {
          if (is_private(at, function)) return;
          builder.CreateCall(hook, {at, builder.CreateZExtOrTrunc(bytes, size_type)});
        };
        const auto size_of = [&](llvm::Type* type) {
          return builder.getInt64(layout.getTypeStoreSize(type).getFixedValue());
        };
        if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(instruction)) {
          announce(loads, load->getPointerOperand(), size_of(load->getType()));
        } else if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(instruction)) {
          announce(stores, store->getPointerOperand(),
                   size_of(store->getValueOperand()->getType()));
        } else if (auto* const move = llvm::dyn_cast<llvm::MemIntrinsic>(instruction)) {
          if (auto* const transfer = llvm::dyn_cast<llvm::MemTransferInst>(move)) {
            announce(loads, transfer->getRawSource(), transfer->getLength());
          }
          announce(stores, move->getRawDest(), move->getLength());
        }
      }
    }
  }

  // Appends the number of its place to the arguments of each call into the emulator.
  void number_calls(llvm::Module& module) {
    llvm::Type* const site_type = llvm::Type::getInt32Ty(module.getContext());
    std::vector<llvm::Function*> called;
    for (llvm::Function& function : module) {
      if (is_hook(function) && function.getName().starts_with(kHookPrefix) &&
          !function.doesNotAccessMemory()) {
        called.push_back(&function);
      }
    }
    for (llvm::Function* const old : called) {
      std::vector<llvm::Type*> parameters(old->getFunctionType()->param_begin(),
                                          old->getFunctionType()->param_end());
      parameters.push_back(site_type);
      auto* const type = llvm::FunctionType::get(old->getReturnType(), parameters, false);
      auto* const numbered = llvm::Function::Create(type, old->getLinkage(), "", module);
      numbered->takeName(old);
      numbered->setAttributes(old->getAttributes());
      const std::vector<llvm::User*> users(old->user_begin(), old->user_end());
      for (llvm::User* const user : users) {
        auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
        if (call == nullptr) continue;
        std::vector<llvm::Value*> arguments(call->arg_begin(), call->arg_end());
        arguments.push_back(llvm::ConstantInt::get(site_type, site_of(*call)));
        auto* const replacement =
            llvm::CallInst::Create(type, numbered, arguments, "", call->getIterator());
        replacement->setAttributes(call->getAttributes());
        replacement->setCallingConv(call->getCallingConv());
        replacement->setDebugLoc(call->getDebugLoc());
        call->replaceAllUsesWith(replacement);
        call->eraseFromParent();
      }
      if (old->use_empty()) old->eraseFromParent();
    }
  }

  std::string source_name_;
  std::unordered_map<const llvm::DILocation*, Site> sites_;
};

}  // namespace

Diagnostic unknown_construct(std::string_view what, Place place) {
  return {ErrorCode::kToolchain, std::move(place),
          fmt::format("the emulator does not know {}", what), std::string(kOnlyDeviceHeaders)};
}

Result<void> instrument(llvm::Module& module, const std::string& source_name) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  Diagnostics refused;
  llvm::ModulePassManager passes;
  passes.addPass(Refuse(source_name, refused));
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::GlobalDCEPass());
  llvm::FunctionPassManager simplify;
  simplify.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  simplify.addPass(llvm::EarlyCSEPass(true));
  simplify.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(simplify)));
  passes.addPass(Instrument(source_name));
  passes.run(module, modules);
  if (!refused.empty()) return Failure(std::move(refused));
  return {};
}

}  // namespace afdep::emulator
