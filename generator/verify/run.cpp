#include "generator/verify/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "generator/verify/faults.h"
#include "generator/verify/hazard.h"
#include "generator/verify/stage.h"

namespace afdep::verify {
namespace {

constexpr int kBackToBack = 3;      // eager exchanges before anybody looks
constexpr int kEagerRounds = 2;     // with the above: three generations of each parity
constexpr int kReplaysABucket = 6;  // likewise
// Of even seeds: the wrap comes within the first exchanges, not always in the same place.
constexpr std::uint32_t kLateGeneration = 0xfffffff8U;
constexpr std::uint64_t kLateGenerations = 6;

class Run {
 public:
  Run(const Subject& subject, const plan::ExchangePlan& plan, const bundle::Bundle& bundle,
      const RunOptions& options)
      : subject_(subject), plan_(plan), bundle_(bundle), options_(options), random_(options.seed) {}

  Result<RunReport> run() {
    AFDEP_RETURN_IF_FAILED(exchanges());
    if (options_.faults && report_.failures.empty()) {
      AFDEP_RETURN_IF_FAILED(run_faults(subject_, bundle_, options_, random_, report_));
    }
    return std::move(report_);
  }

 private:
  Result<void> exchanges() {
    EmulatorOptions emulator_options;
    emulator_options.schedule.seed = options_.seed;
    emulator_options.schedule.explore = options_.explore;
    emulator_options.schedule.stop_on_stall = true;
    WorldOptions world_options;
    if (options_.seed % 2 == 0) {
      world_options.generation_before_first =
          kLateGeneration + static_cast<std::uint32_t>(options_.seed / 2 % kLateGenerations);
    }
    Result<Stage> stage = make_stage(emulator_options, bundle_, world_options);
    if (!stage.ok()) return stage.failure();
    backend_ = stage->backend.get();
    const Result<void> ran = phases(*stage->world);
    if (!report_.failures.empty()) report_.trace = backend_->counts().trace;
    report_.rows += stage->world->tally().rows;
    report_.compared += stage->world->tally().values;
    stage->world.reset();
    backend_ = nullptr;
    return ran;
  }

  Result<void> phases(World& world) {
    AFDEP_RETURN_IF_FAILED(eager(world));
    if (options_.exchanges != 0 || !report_.failures.empty()) return {};
    const bool all = options_.whole;
    // Strategies take turns by seed: every kind meets each of them.
    const std::uint64_t kind = options_.seed / 3 % 3;
    if (all || kind == 0) AFDEP_RETURN_IF_FAILED(alone(world));
    if (bundle_.manifest().capture && report_.failures.empty() && (all || kind == 1)) {
      AFDEP_RETURN_IF_FAILED(replayed(world));
    }
    if (bundle_.manifest().has_view && report_.failures.empty() && (all || kind == 2)) {
      AFDEP_RETURN_IF_FAILED(viewed(world));
    }
    if (bundle_.manifest().route_check != bundle::RouteCheck::kTrap && report_.failures.empty() &&
        (all || kind == 2)) {
      AFDEP_RETURN_IF_FAILED(bad_ids(world));
    }
    if (report_.failures.empty()) report_.note(world.close_all(), "closing");
    return {};
  }

  // Exchanges of all buckets follow each other without anybody waiting for the host.
  Result<void> eager(World& world) {
    const bool shrunk = options_.exchanges != 0;
    const int together = shrunk ? options_.exchanges : kBackToBack;
    std::vector<Slot*> slots;
    for (int i = 0; i < together; ++i) {
      const Result<Slot*> slot = world.add_slot(bucket(i));
      if (!slot.ok()) return slot.failure();
      slots.push_back(*slot);
    }
    const int rounds = shrunk || !options_.whole ? 1 : kEagerRounds;
    for (int round = 0; round < rounds && report_.failures.empty(); ++round) {
      std::vector<ExchangeCase> cases;
      for (Slot* const slot : slots) {
        cases.push_back(next_case(world, slot->bucket));
        AFDEP_RETURN_IF_FAILED(world.load(*slot, cases.back()));
      }
      for (Slot* const slot : slots) AFDEP_RETURN_IF_FAILED(world.enqueue_all(*slot, random_));
      if (!report_.note(world.backend().synchronize_all(), "eager exchanges")) return {};
      report_.exchanges += together;
      if (!report_.note(world.check_all(), "eager exchanges")) return {};
      for (std::size_t i = 0; i < slots.size(); ++i) {
        AFDEP_RETURN_IF_FAILED(compare(world, *slots[i], cases[i], "eager"));
      }
    }
    return {};
  }

  // One exchange of each bucket with nothing before or behind it: what it sends is counted.
  Result<void> alone(World& world) {
    for (const TestedBucket& tested : subject_.buckets) {
      if (!report_.failures.empty()) return {};
      const Result<Slot*> slot = world.add_slot(tested.tested);
      if (!slot.ok()) return slot.failure();
      const ExchangeCase exchange = next_case(world, tested.tested);
      backend_->clear_ledger();
      AFDEP_RETURN_IF_FAILED(one_exchange(world, **slot, exchange, "alone"));
      if (!report_.failures.empty()) return {};
      LedgerEntry entry{
          .bucket = tested.tested, .routing = exchange.routing, .tokens = 0, .seen = {}};
      for (const int count : exchange.tokens()) entry.tokens += count;
      entry.seen.hops = backend_->hops();
      for (const auto& [link, traffic] : backend_->ledger()) {
        entry.seen.links[link] = {.messages = traffic.messages,
                                  .bytes = traffic.bytes,
                                  .packets = traffic.packets,
                                  .flags = traffic.flags,
                                  .done = traffic.done};
      }
      for (const std::string& line : differences(entry.seen, predict(plan_, exchange))) {
        report_.fail(fmt::format("ledger of bucket {}, routing {}: {}", tested.tested,
                                 to_string(exchange.routing), line));
      }
      report_.ledger.push_back(std::move(entry));
    }
    return {};
  }

  // Graphs of all buckets take turns; ids, weights, payload and replies change in place between
  // replays.
  Result<void> replayed(World& world) {
    struct Captured {
      Slot* slot;
      std::vector<int> tokens;
      std::vector<Graph> graphs;
    };
    std::vector<Captured> captured;
    for (const TestedBucket& tested : subject_.buckets) {
      const Result<Slot*> slot = world.add_slot(tested.tested);
      if (!slot.ok()) return slot.failure();
      ExchangeCase exchange = next_case(world, tested.tested);
      AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
      Result<std::vector<Graph>> graphs = world.capture(**slot, 1);
      if (!graphs.ok()) return graphs.failure();
      captured.push_back({*slot, exchange.tokens(), std::move(*graphs)});
    }
    const int replays =
        std::max(options_.whole ? kReplaysABucket : kBackToBack, static_cast<int>(captured.size()));
    for (int replay = 0; replay < replays && report_.failures.empty(); ++replay) {
      const Captured& each = captured[static_cast<std::size_t>(replay) % captured.size()];
      const int tested = each.slot->bucket;
      const ExchangeCase exchange = make_case(world.shape(), tested, world.receive_rows(tested),
                                              each.tokens, next_routing(), random_);
      AFDEP_RETURN_IF_FAILED(world.load(*each.slot, exchange));
      for (int rank = 0; rank < world.ranks(); ++rank) {
        AFDEP_RETURN_IF_FAILED(world.backend().replay(each.graphs[static_cast<std::size_t>(rank)],
                                                      world.stream(rank)));
      }
      if (!report_.note(world.backend().synchronize_all(), "graph replays")) return {};
      ++report_.exchanges;
      ++report_.replays;
      if (!report_.note(world.check_all(), "graph replays")) return {};
      AFDEP_RETURN_IF_FAILED(compare(world, *each.slot, exchange, "graph replay"));
    }
    for (const Captured& each : captured) {
      for (const Graph graph : each.graphs) world.backend().destroy_graph(graph);
    }
    return {};
  }

  Result<void> viewed(World& world) {
    for (const TestedBucket& tested : subject_.buckets) {
      const Result<Slot*> slot = world.add_slot(tested.tested);
      if (!slot.ok()) return slot.failure();
      (*slot)->view = true;
      AFDEP_RETURN_IF_FAILED(one_exchange(world, **slot, next_case(world, tested.tested), "view"));
      if (!report_.failures.empty()) return {};
    }
    return {};
  }

  // Ids out of range or repeated are dropped, and reported where the spec asks for that.
  Result<void> bad_ids(World& world) {
    const int tested = bucket(0);
    const Result<Slot*> slot = world.add_slot(tested);
    if (!slot.ok()) return slot.failure();
    const std::vector<int> full(static_cast<std::size_t>(world.shape().sources), tested);
    const ExchangeCase exchange = make_case(world.shape(), tested, world.receive_rows(tested), full,
                                            Routing::kBadIds, random_);
    AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.enqueue_all(**slot, random_));
    if (!report_.note(world.backend().synchronize_all(), "bad ids")) return {};
    ++report_.exchanges;
    for (int source = 0; source < world.shape().sources; ++source) {
      const int rank = bundle_.manifest().world_rank(bundle::Role::kAttention, source);
      const bool reported = !world.buffer(rank).check().ok();
      const bool expected =
          bundle_.manifest().route_check == bundle::RouteCheck::kReport &&
          has_bad_id(exchange.inputs[static_cast<std::size_t>(source)], world.shape());
      if (reported != expected) {
        report_.fail(
            fmt::format("bad ids: attention {} {}", source,
                        reported ? "reported an id that is legal" : "did not report its bad id"));
      }
    }
    return compare(world, **slot, exchange, "bad ids");
  }

  [[nodiscard]] int bucket(int turn) const {
    return subject_.buckets[static_cast<std::size_t>(turn) % subject_.buckets.size()].tested;
  }

  // Which case is the full one and which the empty one: not the same bucket's in every seed.
  [[nodiscard]] int turn(int made) const {
    return made >= kBackToBack
               ? made
               : static_cast<int>((static_cast<std::uint64_t>(made) + options_.seed - 1) %
                                  kBackToBack);
  }

  Routing next_routing() {
    const auto legal = legal_routings();
    return legal[(options_.seed + static_cast<std::uint64_t>(routings_++)) % legal.size()];
  }

  ExchangeCase next_case(const World& world, int tested) {
    std::vector<int> tokens = token_counts(world.shape(), tested, turn(cases_++), random_);
    if (options_.tokens != 0) {
      for (int& count : tokens) count = std::min(count, options_.tokens);
    }
    return make_case(world.shape(), tested, world.receive_rows(tested), tokens, next_routing(),
                     random_);
  }

  Result<void> one_exchange(World& world, Slot& slot, const ExchangeCase& exchange,
                            std::string_view kind) {
    AFDEP_RETURN_IF_FAILED(world.load(slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.enqueue_all(slot, random_));
    if (!report_.note(world.backend().synchronize_all(), kind)) return {};
    ++report_.exchanges;
    if (!report_.note(world.check_all(), kind)) return {};
    return compare(world, slot, exchange, kind);
  }

  Result<void> compare(World& world, const Slot& slot, const ExchangeCase& exchange,
                       std::string_view kind) {
    const Result<std::vector<std::string>> differences = world.compare(slot, exchange);
    if (!differences.ok()) return differences.failure();
    if (!differences->empty()) {
      const Result<std::string> hazard = name_hazard(world, slot, exchange, history_);
      if (!hazard.ok()) return hazard.failure();
      if (!hazard->empty())
        report_.fail(fmt::format("{}, bucket {}: {}", kind, exchange.bucket, *hazard));
    }
    for (const std::string& difference : *differences) {
      report_.fail(fmt::format("{}, bucket {}, routing {}: {}", kind, exchange.bucket,
                               to_string(exchange.routing), difference));
    }
    history_.push_back(exchange);
    if (history_.size() > kHistory) history_.erase(history_.begin());
    return {};
  }

  static bool has_bad_id(const SourceInput& input, const Shape& shape) {
    const auto top_k = static_cast<std::size_t>(shape.top_k);
    for (std::size_t i = 0; i < input.ids.size(); ++i) {
      const std::int64_t id = input.ids[i];
      if (id < -1 || id >= shape.experts) return true;
      const auto token = input.ids.begin() + static_cast<std::ptrdiff_t>(i / top_k * top_k);
      const auto here = input.ids.begin() + static_cast<std::ptrdiff_t>(i);
      if (id != -1 && std::find(token, here, id) != here) return true;
    }
    return false;
  }

  // Exchanges whose data a stale flag or packet could deliver again.
  static constexpr std::size_t kHistory = 4;

  const Subject& subject_;
  const plan::ExchangePlan& plan_;
  const bundle::Bundle& bundle_;
  const RunOptions& options_;
  EmulatorBackend* backend_ = nullptr;
  RunReport report_;
  Random random_;
  std::vector<ExchangeCase> history_;
  int cases_ = 0;
  int routings_ = 0;
};

}  // namespace

void RunReport::fail(std::string message) {
  if (failures.size() < kMaxFailures) failures.push_back(std::move(message));
}

bool RunReport::note(const Result<void>& result, std::string_view doing) {
  if (result.ok()) return true;
  for (const Diagnostic& diagnostic : result.diagnostics()) {
    fail(fmt::format("{}: {}", doing, diagnostic.message));
  }
  return false;
}

Result<RunReport> run(const Subject& subject, const plan::ExchangePlan& plan,
                      const bundle::Bundle& bundle, const RunOptions& options) {
  return Run(subject, plan, bundle, options).run();
}

}  // namespace afdep::verify
