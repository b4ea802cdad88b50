// The functions that compiled kernels call: declared in templates/device/emulator/afdep, defined in
// hooks.cpp.
#pragma once

#include <span>

namespace afdep::emulator {

struct Hook {
  const char* name;
  void* address;
};

// Every afdep_emu_* function, and the memory functions that a compiler may call on its own.
std::span<const Hook> hooks();

}  // namespace afdep::emulator
