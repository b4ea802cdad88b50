#include "runtime/emulator/crash_guard.h"

#include <signal.h>

#include <array>
#include <cstddef>
#include <memory>
#include <mutex>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

constexpr std::array kSignals = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr std::size_t kAlternateStackBytes = 64 * 1024;

thread_local CrashGuard* t_guard = nullptr;
thread_local Crash t_crash;
std::array<struct sigaction, kSignals.size()> g_before;

void on_signal(int signal, siginfo_t* info, void* context) {
  if (t_guard != nullptr && current_thread() != nullptr) {
    t_crash = {signal, info->si_addr};
    siglongjmp(t_guard->back(), 1);
  }
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    if (kSignals[i] != signal) continue;
    const struct sigaction& before = g_before[i];
    if ((before.sa_flags & SA_SIGINFO) != 0) {
      before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
      before.sa_handler(signal);
    } else {
      // The instruction runs again and meets the default action.
      ::signal(signal, SIG_DFL);
    }
  }
}

// Once per process: handlers are the process's, and runs on several OS threads share them.
void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      struct sigaction action{};
      action.sa_sigaction = on_signal;
      // A fiber whose stack overflowed has no room for the handler.
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigemptyset(&action.sa_mask);
      sigaction(kSignals[i], &action, &g_before[i]);
    }
  });
}

// An alternate signal stack for each OS thread that ever runs kernels, unless it has one.
struct AlternateStack {
  AlternateStack() {
    if (sigaltstack(nullptr, &before) == 0 && (before.ss_flags & SS_DISABLE) == 0) return;
    memory = std::make_unique<std::byte[]>(kAlternateStackBytes);
    stack_t mine{};
    mine.ss_sp = memory.get();
    mine.ss_size = kAlternateStackBytes;
    sigaltstack(&mine, nullptr);
  }
  ~AlternateStack() {
    if (memory != nullptr) sigaltstack(&before, nullptr);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

  std::unique_ptr<std::byte[]> memory;
  stack_t before{};
};

}  // namespace

CrashGuard::CrashGuard() : outer_(t_guard) {
  install();
  thread_local const AlternateStack kStack;
  t_guard = this;
}

CrashGuard::~CrashGuard() { t_guard = outer_; }

const Crash& CrashGuard::crash() { return t_crash; }

}  // namespace afdep::emulator
