// A fault of the machine, made on purpose.
#pragma once

#include <cstdint>

namespace afdep::emulator {

struct Injection {
  enum class Kind : std::uint8_t {
    kNone,
    kDies,      // the rank's threads stop for good, and what its streams hold is dropped
    kCorrupts,  // one bit of the generation in a packet or flag that the rank sends is flipped
  };

  Kind kind = Kind::kNone;
  int rank = 0;
  // kDies: before its access of this number, from 1. kCorrupts: at the packet, flag or done word
  // that it sends as number `after`, from 1.
  std::uint64_t after = 1;
};

}  // namespace afdep::emulator
