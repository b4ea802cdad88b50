// Guarded device memory: filling, poisoning, reading back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/verify/world.h"

namespace afdep::verify {

// On either side of a tensor; keeps the tensor 256-aligned.
inline constexpr std::size_t kGuardBytes = 256;
// Neither a count nor a row that could be right.
inline constexpr std::uint8_t kPoison = 0xfe;

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Poisons the memory and its guards.
Result<void> poison(Backend& backend, const Guarded& memory);
// The same, then puts `bytes` at the start. Precondition: they fit.
Result<void> write(Backend& backend, const Guarded& memory, std::span<const std::byte> bytes);
// The memory with its guards before and after it.
Result<std::vector<std::uint8_t>> read(Backend& backend, const Guarded& memory);

}  // namespace afdep::verify
