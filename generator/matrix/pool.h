// Jobs in processes of their own, so that one that crashes or hangs takes no other with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace afdep::matrix {

enum class Ended {
  kReturned,
  kSignal,  // `number` is the signal
  kExit,    // without a result; `number` is the exit code
  kTimeout,
};

struct JobEnd {
  Ended how = Ended::kReturned;
  int number = 0;
  std::string result;  // kReturned: what the body returned
  std::string stage;   // the last one that the body told
  std::string output;  // the end of what it wrote to stdout and stderr
  double seconds = 0;
  double cpu_seconds = 0;  // of the job and of what it waited for
};

struct PoolOptions {
  int jobs = 2;                // processes at a time
  double limit_seconds = 300;  // of a job; it is then killed
};

// Tells a reader outside the process what a job is doing.
using TellStage = std::function<void(std::string_view stage)>;

// Runs body(i, tell) for each i of [0, count) in a fork of this process and calls on_end(i, end)
// here as each ends. SIGINT and SIGTERM kill what runs, and no further job starts: those end
// without on_end. Children die with this process. An exception in a body is kExit 70 with what() in
// `output`. Returns false if it was interrupted. Precondition: no other thread of this process
// runs.
bool run_pool(int count, const PoolOptions& options,
              const std::function<std::string(int, const TellStage&)>& body,
              const std::function<void(int, JobEnd)>& on_end);

}  // namespace afdep::matrix
