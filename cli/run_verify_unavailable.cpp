// afdep-gen verify and matrix of a build without the emulator.
#include "cli/console.h"
#include "cli/gen_commands.h"

namespace afdep::cli {

namespace {

int unavailable(const std::string& command, bool json) {
  return report_failure({{ErrorCode::kToolchain,
                          {},
                          command + " runs on the CPU emulator, which is not part of this program",
                          "use a build with AFDEP_EMULATOR=ON, which needs Clang and LLVM 19"}},
                        json);
}

}  // namespace

int run_verify(const VerifyArguments& arguments) { return unavailable("verify", arguments.json); }

int run_matrix(const MatrixArguments& arguments) { return unavailable("matrix", arguments.json); }

}  // namespace afdep::cli
