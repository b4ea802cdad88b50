// Everything in a run that could have gone otherwise, as one stream of numbers: which warp goes on,
// for how long, which of several values a load returns, when a copy happens. The same stream on the
// same work gives the same run.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime/emulator/random.h"

namespace afdep::emulator {

// Where picks come from that are not drawn from a seed.
class ChoiceScript {
 public:
  virtual ~ChoiceScript() = default;
  // In [0, options).
  virtual std::uint32_t pick(std::uint32_t options) = 0;
};

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : random_(seed) {}

  // Starts a new stream. `script` may be null: every pick is drawn from the seed.
  void restart(std::uint64_t seed, ChoiceScript* script) {
    random_ = Random(seed);
    script_ = script;
    trace_ = 0;
    count_ = 0;
  }

  // In [0, options); options > 0.
  std::uint32_t pick(std::uint32_t options) {
    if (options == 1) return 0;
    const std::uint32_t picked =
        script_ == nullptr ? random_.below(options) : script_->pick(options);
    trace_ = (std::rotl(trace_, 5) ^ (std::uint64_t{options} << 32 | picked)) * 0x9e3779b97f4a7c15u;
    ++count_;
    return picked;
  }
  // True once in `odds` times.
  bool one_in(std::uint32_t odds) { return pick(odds) == 0; }

  [[nodiscard]] bool scripted() const { return script_ != nullptr; }
  // Hash of all (options, picked) so far, and their number.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  Random random_;
  ChoiceScript* script_ = nullptr;
  std::uint64_t trace_ = 0;
  std::uint64_t count_ = 0;
};

}  // namespace afdep::emulator
