// Reads a kernel's resources back from a cubin.
// Source: ELF-64; the .nv.info attributes EIATTR_REGCOUNT, EIATTR_FRAME_SIZE and
// EIATTR_MIN_STACK_SIZE as nvcc and NVRTC 12 and 13 write them (docs/compile.md lists the bytes).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::compile {

struct CubinKernel {
  std::string symbol;
  int registers = 0;     // of a thread
  int local_bytes = 0;   // stack of a thread, callees included
  int shared_bytes = 0;  // static, of a block, without the system's reservation

  friend bool operator==(const CubinKernel&, const CubinKernel&) = default;
};

// The kernels of a cubin in the order of its symbol table. E805 if the bytes are no cubin or
// contradict themselves; no input makes it read outside them.
Result<std::vector<CubinKernel>> read_cubin(std::span<const std::byte> image);

}  // namespace afdep::compile
