// The emulator's own LLVM passes over the IR of an emitted kernel. The first, before any
// optimization, refuses what the emulator could not watch. The second, after all of them, gives
// every call into the emulator the number of its place in the emitted text and announces every
// access to memory that the device headers did not make.
#pragma once

#include <string>

#include "runtime/support/result.h"

namespace llvm {
class PassBuilder;
}

namespace afdep::emulator {

// Registers both passes. `source_name` is the emitted text as Clang knows it. What the first one
// refuses is added to `refused`, which must outlive the compilation.
void add_instrumentation(llvm::PassBuilder& builder, const std::string& source_name,
                         Diagnostics& refused);

}  // namespace afdep::emulator
