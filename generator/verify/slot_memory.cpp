#include "generator/verify/slot_memory.h"

#include <algorithm>
#include <cstring>

namespace afdep::verify {

Result<void> poison(Backend& backend, const Guarded& memory) {
  return backend.fill(memory.allocation, kPoison, memory.bytes + 2 * kGuardBytes);
}

Result<void> write(Backend& backend, const Guarded& memory, std::span<const std::byte> bytes) {
  AFDEP_CHECK(bytes.size() <= memory.bytes, "more bytes than the memory holds");
  AFDEP_RETURN_IF_FAILED(poison(backend, memory));
  if (bytes.empty()) return {};
  return backend.copy_to_device(memory.data, bytes.data(), bytes.size());
}

Result<std::vector<std::uint8_t>> read(Backend& backend, const Guarded& memory) {
  std::vector<std::uint8_t> bytes(memory.bytes + 2 * kGuardBytes);
  AFDEP_RETURN_IF_FAILED(backend.copy_to_host(bytes.data(), memory.allocation, bytes.size()));
  return bytes;
}

}  // namespace afdep::verify
