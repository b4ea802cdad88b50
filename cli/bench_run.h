// Timing of whole exchanges under CUDA graphs. Method: docs/performance.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/plan/floor.h"
#include "generator/verify/inputs.h"
#include "generator/verify/world.h"
#include "runtime/support/result.h"

namespace afdep::cli {

struct BenchOptions {
  verify::Routing routing = verify::Routing::kRandom;
  int exchanges_per_graph = 10;
  int repeats = 9;
  std::uint64_t seed = 1;
};

// Microseconds an exchange: the slowest attention rank of each repeat.
struct Times {
  double median = 0;
  double min = 0;
  double max = 0;
  // The host took so long to enqueue the replays that it may be what was measured.
  bool enqueue_bound = false;
};

// Microseconds that the host takes to enqueue one eager operation: of each exchange the average
// over the operations of all ranks; median, least and most of the exchanges.
struct EnqueueTimes {
  double median = 0;
  double min = 0;
  double max = 0;
};

struct Cell {
  int tokens = 0;  // of each source
  int bucket = 0;
  std::string protocol;
  bool programmatic = false;  // kernels may become resident before the one before them ends
  Times many;                 // exchanges_per_graph in a graph
  Times one;                  // one in a graph
  EnqueueTimes enqueue;
  plan::Floor floor;
};

// Graphs of one exchange of `tokens` a source, for measurements that take turns.
class Turns {
 public:
  // Checks the data of eager exchanges and of one replay, as measure() does. The world must outlive
  // it.
  static Result<Turns> create(verify::World& world, int tokens, const BenchOptions& options);
  Turns(Turns&& other) noexcept;
  Turns& operator=(Turns&&) = delete;
  ~Turns();

  // Times one repeat of at least 100 exchanges; a warm-up does not count.
  Result<void> take(bool warm_up);
  // Of the repeats so far, at least one.
  [[nodiscard]] Times times() const;
  // Checks the data that the last replay left.
  Result<void> check();
  [[nodiscard]] const verify::ExchangeCase& exchange() const { return exchange_; }

 private:
  Turns(verify::World& world, verify::Slot& slot, verify::ExchangeCase exchange,
        std::vector<Graph> graphs, int exchanges_per_graph);

  verify::World* world_;
  verify::Slot* slot_;
  verify::ExchangeCase exchange_;
  std::vector<Graph> graphs_;
  int exchanges_per_graph_;
  std::vector<double> times_;
  double enqueue_share_ = 0;
};

// Checks the data of eager exchanges and of the replayed graph bit for bit, then times. E704 if
// data is wrong: then no time is worth anything.
Result<Cell> measure(verify::World& world, int tokens, const plan::MachineRates& rates,
                     const BenchOptions& options);

}  // namespace afdep::cli
