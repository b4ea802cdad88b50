// Every schedule of a small piece of work, up to equivalence: depth-first search with dynamic
// partial-order reduction and sleep sets.
// Source: Flanagan, Godefroid, "Dynamic Partial-Order Reduction for Model Checking Software"
// (2005); Godefroid, "Partial-Order Methods for the Verification of Concurrent Systems" (1996).
// With a bound on preemptions: Coons, Musuvathi, McKinley, "Bounded Partial-Order Reduction"
// (2013).
//
// A unit is a warp. A step of a unit is the next access to memory of each of its lanes, then all
// that they do up to their next accesses. Two schedules are equivalent if they differ only in the
// order of steps that touch no common byte, or only read it. A poll that misses counts for nothing:
// the schedule in which it comes later is equivalent. It orders nothing either.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/choices.h"

namespace afdep::emulator {

// The newest step of each unit that comes before something, plus one; 0: none.
class Clock {
 public:
  [[nodiscard]] std::uint32_t at(std::uint32_t unit) const {
    return unit < steps_.size() ? steps_[unit] : 0;
  }
  void set(std::uint32_t unit, std::uint32_t step);
  void join(const Clock& other);

 private:
  std::vector<std::uint32_t> steps_;
};

struct ExplorationCounts {
  std::uint64_t schedules = 0;  // run to their end
  std::uint64_t redundant = 0;  // given up, as equivalent to one before
  std::uint64_t steps = 0;      // of all of them
  std::uint64_t longest = 0;    // steps of one schedule
  std::uint64_t values = 0;     // times that a load had more than one value to choose from
};

class Exploration final : public ChoiceScript {
 public:
  // How many loads of one schedule return another value than their newest, at most.
  // preemptions: how often one takes the turn of a unit that could go on, at most. Sleep sets would
  // then lose schedules, and are not used.
  static constexpr std::uint32_t kUnbounded = UINT32_MAX;
  explicit Exploration(std::uint32_t stale_loads, std::uint32_t preemptions = kUnbounded)
      : stale_loads_(stale_loads), preemptions_(preemptions) {}

  // ---- for whoever repeats the work ----
  // Before each schedule.
  void begin();
  // After each schedule: false if all are done.
  bool next();
  // True if the schedule was given up because an equivalent one was run.
  [[nodiscard]] bool redundant() const { return redundant_; }
  // True if the bound on preemptions left a schedule out.
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] const ExplorationCounts& counts() const { return counts_; }
  // The choices of the schedule so far: what replay() takes.
  [[nodiscard]] std::vector<std::uint32_t> choices() const;
  // Only this schedule: `choices`, then the first that comes.
  void replay(std::vector<std::uint32_t> choices);

  // ---- for the scheduler ----
  // The same warp has the same number in every schedule.
  std::uint32_t unit(std::uint64_t stream, std::uint64_t launch, int block, int warp);
  // Which of the units that can go on does; `candidates` ascending. None: the schedule is
  // redundant.
  static constexpr std::uint32_t kNone = UINT32_MAX;
  std::uint32_t decide(std::span<const std::uint32_t> candidates);
  // cell: 16 bytes; bytes: which of them, bit i for byte i.
  static constexpr std::uint32_t kWhole = 0xffff;
  void accessed(std::uint32_t unit, std::uint64_t cell, bool store, std::uint32_t bytes = kWhole);
  // One load of this step, of bytes among which is `byte` of the cell, was such a poll.
  void poll_missed(std::uint32_t unit, std::uint64_t cell, std::uint32_t byte = 0);
  Clock& clock(std::uint32_t unit);
  std::uint32_t pick(std::uint32_t options) override;

 private:
  struct Touch {
    std::uint64_t cell;
    bool store;
    std::uint32_t bytes;
  };
  using Touches = std::vector<Touch>;
  // A decision on the current path: between units, or between `options` values of a load.
  struct Decision {
    std::vector<std::uint32_t> candidates;      // units; of a value empty
    std::uint32_t options = 0;                  // values
    std::uint32_t picked = 0;                   // unit or value
    std::uint32_t before = kNone;               // unit that ran and could go on
    std::uint32_t preemptions = 0;              // up to here
    std::set<std::uint32_t> wanted;             // units to be tried here
    std::map<std::uint32_t, Touches> sleeping;  // units whose step here was tried, or comes later
                                                // anyway, and what it touches
    Clock clock;                                // of the step, once it has ended
    Touches touches;                            // of the step, in this schedule
    Touches earlier;                            // of the step, where its loads returned others
  };
  struct Read {
    std::uint32_t step = 0;  // 0: none
    Clock clock;
  };
  struct Reads {
    Read newest, before;      // before: of an earlier step
    std::uint32_t lanes = 0;  // that read in the newest step, but for polls that missed
  };
  // Bytes of a cell that were accessed together.
  struct Part {
    std::uint32_t bytes = 0;
    std::uint32_t writer = kNone;
    std::uint32_t write_step = 0;
    Clock write_clock;
    std::map<std::uint32_t, Reads> reads;  // since the write, by unit
  };

  static bool conflict(const Touches& a, const Touches& b);
  void race(std::uint32_t step, std::uint32_t unit);
  void want(std::uint32_t step, std::uint32_t unit);
  void end_step();
  void want_initial(std::uint32_t step);
  static bool preempts(const Decision& at, std::uint32_t unit) {
    return at.before != kNone && at.before != unit;
  }
  [[nodiscard]] bool bounded() const { return preemptions_ != kUnbounded; }

  std::uint32_t stale_loads_;
  std::uint32_t preemptions_;
  bool cut_ = false;
  std::set<std::uint32_t> races_;  // of the running step, with these
  std::vector<Decision> path_;
  std::uint32_t depth_ = 0;  // decisions taken in this schedule
  std::uint32_t step_ = 0;   // index of the newest decision between units, plus one; 0: none
  std::uint32_t running_ = kNone;
  std::uint32_t stale_ = 0;
  bool redundant_ = false;
  bool replaying_ = false;
  std::vector<std::uint32_t> script_;  // of a replay
  Clock before_;                       // of the running unit, before its step
  std::vector<Clock> clocks_;          // by unit
  std::unordered_map<std::uint64_t, std::vector<Part>> cells_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, int, int>, std::uint32_t> units_;
  ExplorationCounts counts_;
};

}  // namespace afdep::emulator
