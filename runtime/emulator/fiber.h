// Fibers: one per CUDA thread. A fiber is abandoned rather than unwound, so nothing on its stack
// may need a destructor.
#pragma once

#include <cstddef>
#include <vector>

#include <boost/context/detail/fcontext.hpp>

// GCC defines __SANITIZE_..., Clang has __has_feature.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define AFDEP_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define AFDEP_THREAD_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define AFDEP_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define AFDEP_THREAD_SANITIZER 1
#endif

namespace afdep::emulator {

// Usable bytes from `bottom` up; the stack grows down from the top.
struct FiberStack {
  std::byte* bottom = nullptr;
};

// Stacks for reuse, last in first out, so that few are ever touched. The first kGuarded have an
// unmapped page below: all threads of a kernel run the same text, so those catch an overflow, and a
// process may map only so many pages apart.
class StackPool {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;
  static constexpr std::size_t kGuarded = 8192;

  StackPool() = default;
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Null `bottom` if the process may map no more memory.
  FiberStack take();
  void give_back(FiberStack stack);
  // True if `address` lies in the unmapped page of a guarded stack.
  [[nodiscard]] bool is_guard(const void* address) const;
  [[nodiscard]] std::size_t made() const { return made_; }

 private:
  struct Slab {
    std::byte* begin;
    std::size_t bytes;
    bool guarded;
  };
  std::vector<FiberStack> free_;
  std::vector<Slab> slabs_;
  std::size_t made_ = 0;
};

using FiberContext = boost::context::detail::fcontext_t;

}  // namespace afdep::emulator
