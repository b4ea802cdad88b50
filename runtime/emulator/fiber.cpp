#include "runtime/emulator/fiber.h"

#include <sys/mman.h>

#include <mutex>

#if AFDEP_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace afdep::emulator {
namespace {

constexpr std::size_t kGuardBytes = 4096;
constexpr std::size_t kStacksPerSlab = 64;
constexpr std::size_t kSpareSlabs = 256;

// Slabs of pools that are gone, plain and guarded.
struct Spare {
  std::mutex mutex;
  std::vector<std::byte*> slabs[2];
};
Spare& spare() {
  static Spare all;
  return all;
}

std::byte* take_spare(bool guarded) {
  const std::scoped_lock lock(spare().mutex);
  std::vector<std::byte*>& slabs = spare().slabs[guarded ? 1 : 0];
  if (slabs.empty()) return nullptr;
  std::byte* const slab = slabs.back();
  slabs.pop_back();
  return slab;
}

}  // namespace

StackPool::~StackPool() {
  const std::scoped_lock lock(spare().mutex);
  for (const Slab& slab : slabs_) {
    // Touched stacks are kept for the next pool: an exploration makes thousands of pools, and a
    // page touched for the first time costs more than a fiber's life.
    std::vector<std::byte*>& slabs = spare().slabs[slab.guarded ? 1 : 0];
    if (slabs.size() < kSpareSlabs) {
      slabs.push_back(slab.begin);
    } else {
      munmap(slab.begin, slab.bytes);
    }
  }
}

FiberStack StackPool::take() {
  if (free_.empty()) {
    const bool guarded = made_ < kGuarded;
    const std::size_t step = kBytes + (guarded ? kGuardBytes : 0);
    const std::size_t bytes = step * kStacksPerSlab;
    std::byte* begin = take_spare(guarded);
    const bool fresh = begin == nullptr;
    if (fresh) {
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) return {};
      begin = static_cast<std::byte*>(memory);
    }
    slabs_.push_back({begin, bytes, guarded});
    for (std::size_t i = kStacksPerSlab; i-- > 0;) {
      std::byte* const low = begin + i * step;
      // A guard that cannot be had is a smaller loss than the run.
      if (guarded && fresh) mprotect(low, kGuardBytes, PROT_NONE);
      free_.push_back({guarded ? low + kGuardBytes : low});
    }
    made_ += kStacksPerSlab;
  }
  const FiberStack stack = free_.back();
  free_.pop_back();
  return stack;
}

void StackPool::give_back(FiberStack stack) {
#if AFDEP_ADDRESS_SANITIZER
  // A fiber that was left in the middle leaves its frames' red zones behind.
  __asan_unpoison_memory_region(stack.bottom, kBytes);
#endif
  free_.push_back(stack);
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
