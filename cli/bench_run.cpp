#include "cli/bench_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/bench_floor.h"
#include "cli/rank_timers.h"

namespace afdep::cli {
namespace {

using verify::ExchangeCase;
using verify::Slot;
using verify::World;

constexpr int kCheckedExchanges = 3;    // eager, before anything is timed
constexpr int kExchangesARepeat = 100;  // at least
constexpr double kEnqueueShare = 0.9;   // of the measured time
constexpr int kEagerExchanges = 100;
constexpr int kOperations = 2;  // of a rank in an exchange

double microseconds(std::chrono::duration<double, std::micro> time) { return time.count(); }

const bundle::Bucket& bucket_for(const bundle::Manifest& manifest, int tokens) {
  for (const bundle::Bucket& bucket : manifest.buckets) {
    if (bucket.tokens >= tokens) return bucket;
  }
  fail_check("the caller checks the capacity", std::source_location::current());
}

Result<void> replay_all(World& world, const std::vector<Graph>& graphs) {
  for (int rank = 0; rank < world.ranks(); ++rank) {
    AFDEP_RETURN_IF_FAILED(
        world.backend().replay(graphs[static_cast<std::size_t>(rank)], world.stream(rank)));
  }
  return {};
}

struct Repeat {
  double exchange_us = 0;
  double enqueue_share = 0;  // of the time, that the host took to enqueue
};

Result<Repeat> time_repeat(World& world, const std::vector<Graph>& graphs, RankTimers& timers,
                           int exchanges_per_graph) {
  const int replays =
      std::max(1, (kExchangesARepeat + exchanges_per_graph - 1) / exchanges_per_graph);
  // Idle streams: no rank starts behind another one's earlier work.
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  AFDEP_RETURN_IF_FAILED(timers.begin());
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < replays; ++i) AFDEP_RETURN_IF_FAILED(replay_all(world, graphs));
  const double enqueued_us = microseconds(std::chrono::steady_clock::now() - start);
  AFDEP_RETURN_IF_FAILED(timers.end());
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  const Result<double> slowest = timers.slowest_us();
  if (!slowest.ok()) return slowest.failure();
  return Repeat{.exchange_us = *slowest / (static_cast<double>(replays) * exchanges_per_graph),
                .enqueue_share = enqueued_us / *slowest};
}

Times times_of(std::vector<double> times, double enqueue_share) {
  std::ranges::sort(times);
  return Times{.median = times[times.size() / 2],
               .min = times.front(),
               .max = times.back(),
               .enqueue_bound = enqueue_share > kEnqueueShare};
}

Result<Times> time_graphs(World& world, const std::vector<Graph>& graphs, int exchanges_per_graph,
                          int repeats) {
  Result<RankTimers> timers = RankTimers::create(world);
  if (!timers.ok()) return timers.failure();
  std::vector<double> times;
  double enqueue_share = 0;
  for (int repeat = -1; repeat < repeats; ++repeat) {  // the first one warms up
    const Result<Repeat> timed = time_repeat(world, graphs, *timers, exchanges_per_graph);
    if (!timed.ok()) return timed.failure();
    if (repeat < 0) continue;
    times.push_back(timed->exchange_us);
    enqueue_share = std::max(enqueue_share, timed->enqueue_share);
  }
  return times_of(std::move(times), enqueue_share);
}

// One exchange at a time, so that no launch waits for a place in a queue.
Result<EnqueueTimes> time_enqueue(World& world, Slot& slot, const ExchangeCase& exchange) {
  AFDEP_RETURN_IF_FAILED(world.load(slot, exchange));
  std::vector<double> times;
  for (int i = -1; i < kEagerExchanges; ++i) {  // the first one warms up
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    const auto start = std::chrono::steady_clock::now();
    for (int rank = 0; rank < world.ranks(); ++rank) {
      AFDEP_RETURN_IF_FAILED(world.enqueue(slot, rank));
    }
    const double all_us = microseconds(std::chrono::steady_clock::now() - start);
    if (i >= 0) times.push_back(all_us / (kOperations * world.ranks()));
  }
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  std::ranges::sort(times);
  return EnqueueTimes{.median = times[times.size() / 2], .min = times.front(), .max = times.back()};
}

Result<void> check_data(World& world, const Slot& slot, const ExchangeCase& exchange) {
  AFDEP_RETURN_IF_FAILED(world.check_all());
  const Result<std::vector<std::string>> differences = world.compare(slot, exchange);
  if (!differences.ok()) return differences.failure();
  Diagnostics wrong;
  for (const std::string& difference : *differences) {
    wrong.push_back({ErrorCode::kVerification,
                     {},
                     fmt::format("bucket {}: {}", exchange.bucket, difference),
                     "no time is reported for wrong data"});
  }
  if (!wrong.empty()) return Failure(std::move(wrong));
  return {};
}

Result<Times> check_and_time(World& world, Slot& slot, const ExchangeCase& exchange,
                             int exchanges_per_graph, int repeats) {
  const Result<std::vector<Graph>> graphs = world.capture(slot, exchanges_per_graph);
  if (!graphs.ok()) return graphs.failure();
  const auto run = [&]() -> Result<Times> {
    AFDEP_RETURN_IF_FAILED(world.load(slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    AFDEP_RETURN_IF_FAILED(replay_all(world, *graphs));
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    AFDEP_RETURN_IF_FAILED(check_data(world, slot, exchange));
    return time_graphs(world, *graphs, exchanges_per_graph, repeats);
  };
  Result<Times> times = run();
  for (const Graph graph : *graphs) world.backend().destroy_graph(graph);
  return times;
}

// Checks eager exchanges of fresh data; returns one more, which is to be timed.
Result<ExchangeCase> check_eager(World& world, Slot& slot, int tokens,
                                 const BenchOptions& options) {
  verify::Random random(options.seed);
  const std::vector<int> counts(static_cast<std::size_t>(world.shape().sources), tokens);
  const auto fresh = [&] {
    return verify::make_case(world.shape(), slot.bucket, world.receive_rows(slot.bucket), counts,
                             options.routing, random);
  };
  for (int i = 0; i < kCheckedExchanges; ++i) {
    const ExchangeCase exchange = fresh();
    AFDEP_RETURN_IF_FAILED(world.load(slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.enqueue_all(slot, random));
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    AFDEP_RETURN_IF_FAILED(check_data(world, slot, exchange));
  }
  return fresh();
}

}  // namespace

Turns::Turns(World& world, Slot& slot, ExchangeCase exchange, std::vector<Graph> graphs,
             int exchanges_per_graph)
    : world_(&world),
      slot_(&slot),
      exchange_(std::move(exchange)),
      graphs_(std::move(graphs)),
      exchanges_per_graph_(exchanges_per_graph) {}

Turns::Turns(Turns&& other) noexcept
    : world_(other.world_),
      slot_(std::exchange(other.slot_, nullptr)),
      exchange_(std::move(other.exchange_)),
      graphs_(std::exchange(other.graphs_, {})),
      exchanges_per_graph_(other.exchanges_per_graph_),
      times_(std::move(other.times_)),
      enqueue_share_(other.enqueue_share_) {}

Turns::~Turns() {
  for (const Graph graph : graphs_) world_->backend().destroy_graph(graph);
  if (slot_ != nullptr) world_->free_slot(slot_);
}

Result<Turns> Turns::create(World& world, int tokens, const BenchOptions& options) {
  const Result<Slot*> slot = world.add_slot(bucket_for(world.manifest(), tokens).tokens);
  if (!slot.ok()) return slot.failure();
  Result<ExchangeCase> exchange = check_eager(world, **slot, tokens, options);
  if (!exchange.ok()) return exchange.failure();
  Result<std::vector<Graph>> graphs = world.capture(**slot, options.exchanges_per_graph);
  if (!graphs.ok()) return graphs.failure();
  Turns turns(world, **slot, std::move(*exchange), std::move(*graphs), options.exchanges_per_graph);
  AFDEP_RETURN_IF_FAILED(world.load(**slot, turns.exchange_));
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  AFDEP_RETURN_IF_FAILED(replay_all(world, turns.graphs_));
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  AFDEP_RETURN_IF_FAILED(turns.check());
  return turns;
}

Result<void> Turns::take(bool warm_up) {
  Result<RankTimers> timers = RankTimers::create(*world_);
  if (!timers.ok()) return timers.failure();
  const Result<Repeat> timed = time_repeat(*world_, graphs_, *timers, exchanges_per_graph_);
  if (!timed.ok()) return timed.failure();
  if (warm_up) return {};
  times_.push_back(timed->exchange_us);
  enqueue_share_ = std::max(enqueue_share_, timed->enqueue_share);
  return {};
}

Times Turns::times() const { return times_of(times_, enqueue_share_); }

Result<void> Turns::check() { return check_data(*world_, *slot_, exchange_); }

Result<Cell> measure(World& world, int tokens, const plan::MachineRates& rates,
                     const BenchOptions& options) {
  const bundle::Bucket& bucket = bucket_for(world.manifest(), tokens);
  const Result<Slot*> slot = world.add_slot(bucket.tokens);
  if (!slot.ok()) return slot.failure();
  Result<ExchangeCase> checked = check_eager(world, **slot, tokens, options);
  if (!checked.ok()) return checked.failure();
  const ExchangeCase exchange = std::move(*checked);
  Cell cell{.tokens = tokens,
            .bucket = bucket.tokens,
            .protocol = std::string(bundle::to_string(bucket.protocol)),
            .programmatic = world.buffer(0).programmatic(bucket.tokens),
            .many = {},
            .one = {},
            .enqueue = {},
            .floor = loopback_floor(world.manifest(), exchange, rates,
                                    world.buffer(0).programmatic(bucket.tokens))};
  const Result<Times> many =
      check_and_time(world, **slot, exchange, options.exchanges_per_graph, options.repeats);
  if (!many.ok()) return many.failure();
  const Result<Times> one = check_and_time(world, **slot, exchange, 1, options.repeats);
  if (!one.ok()) return one.failure();
  const Result<EnqueueTimes> enqueue = time_enqueue(world, **slot, exchange);
  if (!enqueue.ok()) return enqueue.failure();
  cell.enqueue = *enqueue;
  cell.many = *many;
  cell.one = *one;
  // Nothing of the last exchange may be wrong either.
  AFDEP_RETURN_IF_FAILED(check_data(world, **slot, exchange));
  world.free_slot(*slot);
  return cell;
}

}  // namespace afdep::cli
