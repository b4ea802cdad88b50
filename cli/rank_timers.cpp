#include "cli/rank_timers.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace afdep::cli {

Result<RankTimers> RankTimers::create(verify::World& world) {
  RankTimers timers(world);
  for (int source = 0; source < world.shape().sources; ++source) {
    Pair pair{.rank = world.manifest().world_rank(bundle::Role::kAttention, source),
              .begin = {},
              .end = {}};
    for (Event* const event : {&pair.begin, &pair.end}) {
      const Result<Event> made = world.backend().create_event();
      if (!made.ok()) return made.failure();
      *event = *made;
    }
    timers.pairs_.push_back(pair);
  }
  return timers;
}

RankTimers::RankTimers(RankTimers&& other) noexcept
    : world_(other.world_), pairs_(std::exchange(other.pairs_, {})) {}

RankTimers::~RankTimers() {
  for (const Pair& pair : pairs_) {
    world_.backend().destroy_event(pair.begin);
    world_.backend().destroy_event(pair.end);
  }
}

Result<void> RankTimers::begin() {
  for (const Pair& pair : pairs_) {
    AFDEP_RETURN_IF_FAILED(world_.backend().record(pair.begin, world_.stream(pair.rank)));
  }
  return {};
}

Result<void> RankTimers::end() {
  for (const Pair& pair : pairs_) {
    AFDEP_RETURN_IF_FAILED(world_.backend().record(pair.end, world_.stream(pair.rank)));
  }
  return {};
}

Result<double> RankTimers::slowest_us() {
  double slowest = 0;
  for (const Pair& pair : pairs_) {
    const auto elapsed = world_.backend().elapsed(pair.begin, pair.end);
    if (!elapsed.ok()) return elapsed.failure();
    slowest = std::max(slowest, std::chrono::duration<double, std::micro>(*elapsed).count());
  }
  return slowest;
}

}  // namespace afdep::cli
