// A progress line on stderr for a person who waits.
#pragma once

#include <chrono>
#include <string>

namespace afdep::cli {

// Draws only if stderr is a terminal and two seconds have passed; removes its line when it ends.
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
  std::chrono::steady_clock::time_point start_;
};

}  // namespace afdep::cli
