// Turns the text of an emitted kernel into code of this process: Clang to LLVM IR, ORC LLJIT to
// machine code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::emulator {

// Code of one kernel; lives as long as the process.
struct CompiledKernel {
  void (*run)(const void* args) = nullptr;  // one CUDA thread; calls the hooks of hooks.h
  std::size_t args_bytes = 0;               // size of the kernel's one argument struct
  // The bound of the kernel's waits, CommonArgs::timeout_ns; 0 if its arguments have no CommonArgs.
  std::uint64_t (*timeout_ns)(const void* args) = nullptr;
  // Which exchange a launch belongs to, by the generation words as they are before it; 0 if it has
  // none.
  std::uint32_t (*generation)(const void* args) = nullptr;
};

// Compiles `source` against the device headers of the emulator. Every diagnostic is an error
// (kToolchain, with its place in `source_name`). Compiled once per process and text; safe to call
// from several threads.
Result<const CompiledKernel*> compile(std::string_view source_name, std::string_view symbol,
                                      std::string_view source);

struct HeaderText {
  std::string path;  // below templates/: "device/common/afdep/wait.cuh"
  std::string text;
};

// For tests of the verifier: from now on kernels are compiled against these texts in place of the
// embedded ones of the same paths. None: against the embedded ones again.
void replace_device_headers(std::vector<HeaderText> headers);

}  // namespace afdep::emulator
