// Signals that compiled kernels raise (a wild address, an illegal instruction) end the run with a
// report, not the process.
#pragma once

#include <csetjmp>

namespace afdep::emulator {

struct Crash {
  int signal = 0;
  const void* address = nullptr;
};

// While one lives, a fatal signal on this OS thread that arrives while current_thread() is set
// jumps to `back()`, for which the owner called sigsetjmp. Signals at other times go where they
// went before.
class CrashGuard {
 public:
  CrashGuard();
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;

  sigjmp_buf& back() { return back_; }
  // The signal that jumped.
  [[nodiscard]] static const Crash& crash();

 private:
  sigjmp_buf back_;
  CrashGuard* outer_ = nullptr;
};

}  // namespace afdep::emulator
