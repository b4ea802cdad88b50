// Progress on stderr for who waits.
#pragma once

#include <chrono>
#include <string>

namespace afdep::cli {

// On a terminal, a bar from the second second on, which goes when it ends; elsewhere a plain line
// every ten seconds.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // One caller at a time.
  void show(int done, int total);

 private:
  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point next_;  // not to be shown before
};

}  // namespace afdep::cli
