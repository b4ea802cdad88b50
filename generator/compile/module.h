// A compiled kernel and what its compiler made of it.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/result.h"

namespace afdep {

struct CompiledModule {
  std::string symbol;            // the kernel's extern "C" name
  std::string arch;              // "sm_90a"
  std::vector<std::byte> image;  // a cubin: an ELF file for this arch and no other
  std::string log;      // always empty in a module that compile() returns: a remark is a failure
  int registers = 0;    // of a thread
  int spill_bytes = 0;  // stores and loads of spilled registers in the code, added up
  int local_bytes = 0;  // stack of a thread, callees included
  int shared_bytes =
      0;  // static shared memory of a block, without the 1,024 bytes the system reserves

  friend bool operator==(const CompiledModule&, const CompiledModule&) = default;
};

namespace compile {

// What the plan allows a kernel.
struct Ceilings {
  int registers = 255;   // of a thread
  int shared_bytes = 0;  // static, of a block
};

// Empty if the module keeps to the ceilings and uses neither spills nor local memory; else one
// diagnostic each, with the figure and its limit.
Diagnostics check_ceilings(const CompiledModule& module, const Ceilings& ceilings);

// Architectures that kernels are compiled for, as --gpu-architecture names them.
std::span<const std::string_view> supported_arches();

}  // namespace compile
}  // namespace afdep
