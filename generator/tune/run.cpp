#include "generator/tune/run.h"

#include <algorithm>
#include <utility>

namespace afdep::tune {
namespace {

// One bucket's turn.
class BucketRun {
 public:
  BucketRun(const spec::Spec& spec, const BucketArms& bucket, Timer& timer, State& state,
            const RunOptions& options, const std::function<void()>& step)
      : spec_(spec),
        bucket_(bucket),
        timer_(timer),
        state_(state),
        options_(options),
        step_(step) {}

  Result<Ending> run() {
    std::vector<const Arm*> open;
    for (const Arm& arm : bucket_.arms) {
      if (missing(arm) == 0) continue;
      if (options_.interrupted()) return Ending::kInterrupted;
      const Result<void> opened = timer_.open(arm, spec_of(spec_, arm.variants.front()));
      step_();
      if (opened.ok()) {
        open.push_back(&arm);
      } else if (is_refusal(opened.diagnostics())) {
        state_.refused[arm.name()] = opened.diagnostics().front().message;
      } else {
        return opened.failure();
      }
    }
    return take_turns(open);
  }

 private:
  static bool is_refusal(const Diagnostics& diagnostics) {
    return std::ranges::all_of(diagnostics, [](const Diagnostic& each) {
      return each.code == ErrorCode::kLaunch || each.code == ErrorCode::kArch;
    });
  }

  [[nodiscard]] int missing(const Arm& arm) const {
    if (state_.refused.contains(arm.name())) return 0;
    const auto found = state_.samples.find(arm.name());
    const int have = found == state_.samples.end() ? 0 : static_cast<int>(found->second.size());
    return std::max(0, options_.repeats - have);
  }

  Result<Ending> take_turns(const std::vector<const Arm*>& open) {
    while (std::ranges::any_of(open, [this](const Arm* arm) { return missing(*arm) > 0; })) {
      for (const Arm* const arm : open) {
        if (missing(*arm) == 0) continue;
        if (options_.interrupted()) return Ending::kInterrupted;
        const Result<double> us = timer_.time(*arm);
        if (!us.ok()) return us.failure();
        state_.samples[arm->name()].push_back(*us);
        step_();
      }
      AFDEP_RETURN_IF_FAILED(options_.keep(state_));
    }
    return Ending::kComplete;
  }

  const spec::Spec& spec_;
  const BucketArms& bucket_;
  Timer& timer_;
  State& state_;
  const RunOptions& options_;
  const std::function<void()>& step_;
};

}  // namespace

Result<Ending> run(const spec::Spec& spec, const std::vector<BucketArms>& arms, Timer& timer,
                   State& state, const RunOptions& options) {
  int total = 0;
  for (const BucketArms& bucket : arms) {
    total += static_cast<int>(bucket.arms.size()) * (options.repeats + 1);
  }
  int before = 0;  // steps of the buckets before this one
  int done = 0;
  const std::function<void()> step = [&] { options.on_progress(++done, total); };
  for (const BucketArms& bucket : arms) {
    done = before;
    const Result<Ending> ended = BucketRun(spec, bucket, timer, state, options, step).run();
    timer.close_all();
    before += static_cast<int>(bucket.arms.size()) * (options.repeats + 1);
    const Result<void> kept = options.keep(state);
    if (!ended.ok()) return ended.failure();
    AFDEP_RETURN_IF_FAILED(kept);
    if (*ended == Ending::kInterrupted) return Ending::kInterrupted;
    options.on_bucket(bucket.bucket);
  }
  return Ending::kComplete;
}

}  // namespace afdep::tune
