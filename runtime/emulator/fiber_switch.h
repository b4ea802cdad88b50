// The switch between the scheduler's stack and a fiber's, with what the sanitizers must know of it.
#pragma once

#include <cstddef>

#include "runtime/emulator/execution.h"
#include "runtime/emulator/fiber.h"

#if AFDEP_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#elif AFDEP_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>

#include <utility>
#include <vector>
#endif

namespace afdep::emulator {

#if AFDEP_ADDRESS_SANITIZER

inline thread_local void* t_main_fake_stack = nullptr;
inline thread_local const void* t_main_bottom = nullptr;
inline thread_local std::size_t t_main_bytes = 0;

inline FiberContext jump_to_fiber(Thread& thread) {
  __sanitizer_start_switch_fiber(&t_main_fake_stack, thread.stack.bottom, StackPool::kBytes);
  const auto back = boost::context::detail::jump_fcontext(thread.context, &thread);
  __sanitizer_finish_switch_fiber(t_main_fake_stack, nullptr, nullptr);
  return back.fctx;
}
inline void arrived_on_fiber(Thread& self) {
  __sanitizer_finish_switch_fiber(self.sanitizer, &t_main_bottom, &t_main_bytes);
}
inline FiberContext jump_to_main(Thread& self, FiberContext main) {
  const bool ended = self.state == ThreadState::kEnded;
  __sanitizer_start_switch_fiber(ended ? nullptr : &self.sanitizer, t_main_bottom, t_main_bytes);
  const auto back = boost::context::detail::jump_fcontext(main, nullptr);
  arrived_on_fiber(self);
  return back.fctx;
}
inline void forget_fiber(Thread& thread) { thread.context = nullptr; }

#elif AFDEP_THREAD_SANITIZER

inline thread_local void* t_main_fiber = nullptr;

// Making what the sanitizer keeps of a fiber takes far longer than a fiber lives, so it serves
// several, one after another. Not for ever: each that ends leaves its frames on a stack of calls.
struct SanitizerFiber {
  void* fiber = nullptr;
  int uses = 0;
};
constexpr int kMaxSanitizerUses = 1000;
inline thread_local std::vector<SanitizerFiber*> t_spare_fibers;

inline FiberContext jump_to_fiber(Thread& thread) {
  t_main_fiber = __tsan_get_current_fiber();
  if (thread.sanitizer == nullptr) {
    if (t_spare_fibers.empty()) {
      thread.sanitizer = new SanitizerFiber{__tsan_create_fiber(0), 0};
    } else {
      thread.sanitizer = t_spare_fibers.back();
      t_spare_fibers.pop_back();
    }
  }
  __tsan_switch_to_fiber(static_cast<SanitizerFiber*>(thread.sanitizer)->fiber, 0);
  return boost::context::detail::jump_fcontext(thread.context, &thread).fctx;
}
inline void arrived_on_fiber(Thread& /*self*/) {}
inline FiberContext jump_to_main(Thread& /*self*/, FiberContext main) {
  __tsan_switch_to_fiber(t_main_fiber, 0);
  return boost::context::detail::jump_fcontext(main, nullptr).fctx;
}
inline void forget_fiber(Thread& thread) {
  thread.context = nullptr;
  if (thread.sanitizer == nullptr) return;
  auto* const fiber = static_cast<SanitizerFiber*>(std::exchange(thread.sanitizer, nullptr));
  if (++fiber->uses < kMaxSanitizerUses) {
    t_spare_fibers.push_back(fiber);
  } else {
    __tsan_destroy_fiber(fiber->fiber);
    delete fiber;
  }
}

#else

// Returns when the fiber switches out: where it goes on.
inline FiberContext jump_to_fiber(Thread& thread) {
  return boost::context::detail::jump_fcontext(thread.context, &thread).fctx;
}
// First call on a new fiber.
inline void arrived_on_fiber(Thread& /*self*/) {}
// Returns when the scheduler switches to this fiber again: where the scheduler goes on.
inline FiberContext jump_to_main(Thread& /*self*/, FiberContext main) {
  return boost::context::detail::jump_fcontext(main, nullptr).fctx;
}
// The fiber never runs again.
inline void forget_fiber(Thread& thread) { thread.context = nullptr; }

#endif

}  // namespace afdep::emulator
