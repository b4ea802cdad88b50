// How a run interleaves the threads of all ranks. A strategy decides; the scheduler carries out.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/execution.h"

namespace afdep::emulator {

enum class Explore : std::uint8_t {
  kRandom,      // each seed draws how long threads run and how long a warp is stayed with
  kPct,         // fixed priorities that change at a few points
  kLate,        // one rank, block or warp runs only while nobody else can
  kExhaustive,  // every schedule up to equivalence; see exhaustive.h
};
std::string_view to_string(Explore explore);  // "random", "pct", "late", "exhaustive"

class Strategy {
 public:
  virtual ~Strategy() = default;

  // A run begins, the first or another one. Called before anything else.
  virtual void restart() = 0;
  // Whose lane runs next. `runnable` is not empty; `last` is where the last lane ran, if it can go
  // on, else null.
  virtual Warp& next_warp(std::span<Warp* const> runnable, Warp* last) = 0;
  // A runnable lane of it.
  virtual Thread& next_lane(Warp& warp);
  // Points of interruption that a thread of `warp` passes before the scheduler decides again; at
  // least 1.
  virtual std::uint32_t slice(const Warp& warp) = 0;
  // A thread was switched out after it passed so many of them.
  virtual void ran(std::uint32_t /*points*/) {}
  // A warp became runnable while `running`, if not null, runs: true if that must stop soon. Told of
  // every warp.
  virtual bool overtakes(Warp& /*warp*/, const Warp* /*running*/) { return false; }
  // Whether a block starts now although other threads can run.
  virtual bool starts_block() = 0;

 protected:
  explicit Strategy(Choices& choices) : choices_(choices) {}
  Choices& choices_;
};

// For kExhaustive, whose decisions an Exploration takes, any. depth: of kPct.
std::unique_ptr<Strategy> make_strategy(Explore explore, Choices& choices, int depth);

}  // namespace afdep::emulator
