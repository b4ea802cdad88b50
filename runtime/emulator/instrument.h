// The emulator's own LLVM passes over the IR of an emitted kernel. The first, before any
// optimization, refuses what the emulator could not watch. The second, after all of them, gives
// every call into the emulator the number of its place in the emitted text and announces every
// access to memory that the device headers did not make.
#pragma once

#include <string>
#include <string_view>

#include "runtime/support/result.h"

namespace llvm {
class Module;
}

namespace afdep::emulator {

inline constexpr std::string_view kOnlyDeviceHeaders =
    "an emitted kernel may use nothing but the device headers";

// "the emulator does not know WHAT", E805.
Diagnostic unknown_construct(std::string_view what, Place place);

// Runs both passes over what Clang made of an emitted text, and between them no more of LLVM's own
// than the second needs: kernels run for milliseconds, so compiling them is what counts.
// `source_name` is the text as Clang knows it. What the first pass refuses is the failure.
Result<void> instrument(llvm::Module& module, const std::string& source_name);

}  // namespace afdep::emulator
