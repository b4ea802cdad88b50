// afdep-gen verify of a build without the emulator.
#include "cli/console.h"
#include "cli/gen_commands.h"

namespace afdep::cli {

int run_verify(const VerifyArguments& arguments) {
  return report_failure({{ErrorCode::kToolchain,
                          {},
                          "verify runs on the CPU emulator, which is not part of this program",
                          "use a build with AFDEP_EMULATOR=ON, which needs Clang and LLVM 19"}},
                        arguments.json);
}

}  // namespace afdep::cli
