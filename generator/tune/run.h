// The tuner's loop: arms of a bucket take turns, so that a drift of the machine meets all alike.
#pragma once

#include <functional>
#include <vector>

#include "generator/spec/spec.h"
#include "generator/tune/arms.h"
#include "generator/tune/state.h"
#include "runtime/support/result.h"

namespace afdep::tune {

// What measures. A GPU in the tool, a script in tests.
class Timer {
 public:
  virtual ~Timer() = default;
  // Makes an arm of the current bucket ready and checks its data. E206 or E402: it cannot run here,
  // and is left out; any other failure ends the tuning.
  virtual Result<void> open(const Arm& arm, const spec::Spec& spec) = 0;
  // One repeat of an arm that is open: us an exchange.
  virtual Result<double> time(const Arm& arm) = 0;
  // The bucket is done.
  virtual void close_all() = 0;
};

struct RunOptions {
  int repeats = 9;  // of each arm
  // Asked between measurements.
  std::function<bool()> interrupted = [] { return false; };
  // Told after each arm that was prepared and each measurement.
  std::function<void(int done, int total)> on_progress = [](int, int) {};
  // A bucket has all its measurements.
  std::function<void(int bucket)> on_bucket = [](int) {};
  // Keeps the state; called after each round and at the end of a bucket.
  std::function<Result<void>(const State&)> keep = [](const State&) { return Result<void>(); };
};

enum class Ending : std::uint8_t { kComplete, kInterrupted };

// Adds to `state` what is missing; arms that have their repeats are not run again. What it holds
// after a failure or an interruption is kept.
Result<Ending> run(const spec::Spec& spec, const std::vector<BucketArms>& arms, Timer& timer,
                   State& state, const RunOptions& options);

}  // namespace afdep::tune
