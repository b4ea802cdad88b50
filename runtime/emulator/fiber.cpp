#include "runtime/emulator/fiber.h"

#include <sys/mman.h>

namespace afdep::emulator {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStacksPerSlab = 64;

}  // namespace

StackPool::~StackPool() {
  for (const Slab& slab : slabs_) munmap(slab.begin, slab.bytes);
}

FiberStack StackPool::take() {
  if (free_.empty()) {
    const bool guarded = made_ < kGuarded;
    const std::size_t step = kBytes + (guarded ? kGuardBytes : 0);
    const std::size_t bytes = step * kStacksPerSlab;
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return {};
    std::byte* const begin = static_cast<std::byte*>(memory);
    slabs_.push_back({begin, bytes, guarded});
    for (std::size_t i = kStacksPerSlab; i-- > 0;) {
      std::byte* const low = begin + i * step;
      // A guard that cannot be had is a smaller loss than the run.
      if (guarded) mprotect(low, kGuardBytes, PROT_NONE);
      free_.push_back({guarded ? low + kGuardBytes : low});
    }
    made_ += kStacksPerSlab;
  }
  const FiberStack stack = free_.back();
  free_.pop_back();
  return stack;
}

bool StackPool::is_guard(const void* address) const {
  const std::byte* const at = static_cast<const std::byte*>(address);
  for (const Slab& slab : slabs_) {
    if (!slab.guarded || at < slab.begin || at >= slab.begin + slab.bytes) continue;
    return static_cast<std::size_t>(at - slab.begin) % (kBytes + kGuardBytes) < kGuardBytes;
  }
  return false;
}

}  // namespace afdep::emulator
