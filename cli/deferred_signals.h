// Ctrl-C waits while files are half-written.
#pragma once

#include <array>
#include <csignal>

namespace afdep::cli {

// From construction to destruction SIGINT, SIGTERM and SIGHUP are only noted; then the process gets
// the one that came, as if it had come only now. A signal that is ignored, as under nohup, stays
// ignored. For short stretches of the main thread, one at a time.
class DeferredSignals {
 public:
  DeferredSignals();
  ~DeferredSignals();
  DeferredSignals(const DeferredSignals&) = delete;
  DeferredSignals& operator=(const DeferredSignals&) = delete;

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, kSignals.size()> before_{};
};

}  // namespace afdep::cli
