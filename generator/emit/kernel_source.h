// One emitted kernel, as the compiler and the emulator take it.
#pragma once

#include <string>

namespace afdep {

struct KernelSource {
  std::string symbol;  // the extern "C" name, e.g. "afdep_attention_dispatch_b8"
  std::string
      file_name;  // bundle-relative name, e.g. "attention_dispatch_b8.cu"; no folder, no host path
  std::string text;  // passes emit::check_emitted

  friend bool operator==(const KernelSource&, const KernelSource&) = default;
};

}  // namespace afdep
