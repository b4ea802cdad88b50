// KernelSource -> CompiledModule by NVRTC, without a GPU or a driver.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/compile/module.h"
#include "generator/compile/nvrtc_library.h"
#include "generator/emit/kernel_source.h"
#include "runtime/support/result.h"

namespace afdep::compile {

// The device headers that are built into the program, under the names that emitted sources include
// ("afdep/abi.h"), ordered by name. Built once.
const std::vector<Header>& cuda_headers();

struct CompileOptions {
  std::vector<Header> headers = cuda_headers();
};

// What NVRTC is told besides the arch; part of the cache key.
std::vector<std::string> nvrtc_options(std::string_view arch);

// Compiles for one arch of supported_arches() (E402 otherwise). Fails with E805 if NVRTC is
// missing, if the source does not compile, if NVRTC or ptxas remarks anything, or if the source
// does not hold exactly the kernel `source.symbol`. Thread-safe; about 0.1 s a kernel. Ceilings are
// the caller's to check (check_ceilings).
Result<CompiledModule> compile(const KernelSource& source, std::string_view arch,
                               const CompileOptions& options);

// What ptxas says under -v, taken apart.
struct PtxasReport {
  int spill_bytes = 0;  // stores and loads, over all functions
  std::string remarks;  // every line that is not such a report; empty for a clean compilation
};
PtxasReport parse_ptxas_log(std::string_view log);

}  // namespace afdep::compile
