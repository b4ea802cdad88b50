// Fixed-width integers for every compiler that reads the shared headers: NVRTC, the emulator's
// Clang, the host's C++.
#pragma once

#if defined(__CUDACC_RTC__) || defined(AFDEP_EMULATOR)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;
using size_t = unsigned long;
#else
#include <cstddef>
#include <cstdint>
#endif
