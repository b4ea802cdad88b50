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

Result<Times> time_graphs(World& world, const std::vector<Graph>& graphs, int exchanges_per_graph,
                          int repeats) {
  Result<RankTimers> timers = RankTimers::create(world);
  if (!timers.ok()) return timers.failure();
  const int replays =
      std::max(1, (kExchangesARepeat + exchanges_per_graph - 1) / exchanges_per_graph);
  const double exchanges = static_cast<double>(replays) * exchanges_per_graph;
  std::vector<double> times;
  double enqueue_share = 0;
  for (int repeat = -1; repeat < repeats; ++repeat) {  // the first one warms up
    // Idle streams: no rank starts behind another one's earlier work.
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    AFDEP_RETURN_IF_FAILED(timers->begin());
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < replays; ++i) AFDEP_RETURN_IF_FAILED(replay_all(world, graphs));
    const double enqueued_us = microseconds(std::chrono::steady_clock::now() - start);
    AFDEP_RETURN_IF_FAILED(timers->end());
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    const Result<double> slowest = timers->slowest_us();
    if (!slowest.ok()) return slowest.failure();
    if (repeat < 0) continue;
    times.push_back(*slowest / exchanges);
    enqueue_share = std::max(enqueue_share, enqueued_us / *slowest);
  }
  std::ranges::sort(times);
  return Times{.median = times[times.size() / 2],
               .min = times.front(),
               .max = times.back(),
               .enqueue_bound = enqueue_share > kEnqueueShare};
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

}  // namespace

Result<Cell> measure(World& world, int tokens, const plan::MachineRates& rates,
                     const BenchOptions& options) {
  const bundle::Bucket& bucket = bucket_for(world.manifest(), tokens);
  const Result<Slot*> slot = world.add_slot(bucket.tokens);
  if (!slot.ok()) return slot.failure();
  verify::Random random(options.seed);
  const std::vector<int> counts(static_cast<std::size_t>(world.shape().sources), tokens);
  const auto fresh = [&] {
    return verify::make_case(world.shape(), bucket.tokens, world.receive_rows(bucket.tokens),
                             counts, options.routing, random);
  };
  for (int i = 0; i < kCheckedExchanges; ++i) {
    const ExchangeCase exchange = fresh();
    AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.enqueue_all(**slot, random));
    AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
    AFDEP_RETURN_IF_FAILED(check_data(world, **slot, exchange));
  }
  const ExchangeCase exchange = fresh();
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
