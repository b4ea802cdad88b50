// Two events of every attention rank: how long the slowest one took.
#pragma once

#include <vector>

#include "generator/verify/world.h"
#include "runtime/support/result.h"

namespace afdep::cli {

class RankTimers {
 public:
  // The world must outlive it.
  static Result<RankTimers> create(verify::World& world);
  RankTimers(RankTimers&& other) noexcept;
  RankTimers& operator=(RankTimers&&) = delete;
  ~RankTimers();

  Result<void> begin();
  Result<void> end();
  // Of the slowest rank; every stream must be idle.
  Result<double> slowest_us();

 private:
  struct Pair {
    int rank;
    Event begin, end;
  };
  explicit RankTimers(verify::World& world) : world_(world) {}

  verify::World& world_;
  std::vector<Pair> pairs_;
};

}  // namespace afdep::cli
