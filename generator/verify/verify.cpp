#include "generator/verify/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "generator/generate.h"
#include "generator/verify/world.h"
#include "runtime/emulator/emulator_backend.h"

namespace afdep::verify {
namespace {

constexpr std::size_t kMaxFailures = 10;
constexpr int kBackToBack = 3;      // eager exchanges before anybody looks
constexpr int kEagerRounds = 2;     // with the above: three generations of each parity
constexpr int kReplaysABucket = 6;  // likewise
constexpr std::uint32_t kLateGeneration = 0xfffffffcU;  // the wrap comes within the first exchanges
constexpr std::chrono::milliseconds kAbsentTimeout{20};

// One seed: a schedule, routes and payload.
class Run {
 public:
  Run(const VerifyOptions& options, const Subject& subject, const bundle::Bundle& bundle,
      std::uint64_t seed, VerifyReport& report)
      : options_(options),
        subject_(subject),
        bundle_(bundle),
        seed_(seed),
        report_(report),
        random_(seed) {}

  // What is wrong with the exchange goes into the report; what stops the run is returned.
  Result<void> run() {
    AFDEP_RETURN_IF_FAILED(exchanges());
    if (options_.faults && seed_ == options_.first_seed && report_.failures.empty()) {
      return absent_rank();
    }
    return {};
  }

 private:
  Result<void> exchanges() {
    Result<std::unique_ptr<EmulatorBackend>> backend = make_backend(true);
    if (!backend.ok()) return backend.failure();
    WorldOptions options;
    if (seed_ % 2 == 0) options.generation_before_first = kLateGeneration;
    Result<std::unique_ptr<World>> world = World::create(**backend, bundle_, options);
    if (!world.ok()) return world.failure();
    AFDEP_RETURN_IF_FAILED(eager(**world));
    if (bundle_.manifest().capture && report_.failures.empty()) {
      AFDEP_RETURN_IF_FAILED(replayed(**world));
    }
    if (bundle_.manifest().has_view && report_.failures.empty()) {
      AFDEP_RETURN_IF_FAILED(viewed(**world));
    }
    if (bundle_.manifest().route_check != bundle::RouteCheck::kTrap && report_.failures.empty()) {
      AFDEP_RETURN_IF_FAILED(bad_ids(**world));
    }
    if (report_.failures.empty()) note((*world)->close_all(), "closing");
    report_.rows += (*world)->tally().rows;
    report_.compared += (*world)->tally().values;
    return {};
  }

  // Exchanges of all buckets follow each other without anybody waiting for the host.
  Result<void> eager(World& world) {
    std::vector<Slot*> slots;
    for (int i = 0; i < kBackToBack; ++i) {
      const Result<Slot*> slot = world.add_slot(bucket(i));
      if (!slot.ok()) return slot.failure();
      slots.push_back(*slot);
    }
    for (int round = 0; round < kEagerRounds && report_.failures.empty(); ++round) {
      std::vector<ExchangeCase> cases;
      for (Slot* const slot : slots) {
        cases.push_back(next_case(world, slot->bucket));
        AFDEP_RETURN_IF_FAILED(world.load(*slot, cases.back()));
      }
      for (Slot* const slot : slots) AFDEP_RETURN_IF_FAILED(world.enqueue_all(*slot, random_));
      if (!note(world.backend().synchronize_all(), "eager exchanges")) return {};
      report_.exchanges += kBackToBack;
      if (!note(world.check_all(), "eager exchanges")) return {};
      for (std::size_t i = 0; i < slots.size(); ++i) {
        AFDEP_RETURN_IF_FAILED(compare(world, *slots[i], cases[i], "eager"));
      }
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
    const int replays = std::max(kReplaysABucket, static_cast<int>(captured.size()));
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
      if (!note(world.backend().synchronize_all(), "graph replays")) return {};
      ++report_.exchanges;
      ++report_.replays;
      if (!note(world.check_all(), "graph replays")) return {};
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
    if (!note(world.backend().synchronize_all(), "bad ids")) return {};
    ++report_.exchanges;
    for (int source = 0; source < world.shape().sources; ++source) {
      const int rank = bundle_.manifest().world_rank(bundle::Role::kAttention, source);
      const bool reported = !world.buffer(rank).check().ok();
      const bool expected =
          bundle_.manifest().route_check == bundle::RouteCheck::kReport &&
          has_bad_id(exchange.inputs[static_cast<std::size_t>(source)], world.shape());
      if (reported != expected) {
        fail(fmt::format("bad ids: attention {} {}", source,
                         reported ? "reported an id that is legal" : "did not report its bad id"));
      }
    }
    return compare(world, **slot, exchange, "bad ids");
  }

  // One FFN rank never comes. Whoever waits for it says so, and the rest of the process goes on.
  Result<void> absent_rank() {
    Result<std::unique_ptr<EmulatorBackend>> backend = make_backend(false);
    if (!backend.ok()) return backend.failure();
    Result<std::unique_ptr<World>> made =
        World::create(**backend, bundle_, {.device_timeout = kAbsentTimeout});
    if (!made.ok()) return made.failure();
    World& world = **made;
    const int tested = bucket(0);
    const Result<Slot*> slot = world.add_slot(tested);
    if (!slot.ok()) return slot.failure();
    const std::vector<int> full(static_cast<std::size_t>(world.shape().sources), tested);
    const ExchangeCase exchange = make_case(world.shape(), tested, world.receive_rows(tested), full,
                                            Routing::kDistinctWorkers, random_);
    AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
    const int absent = random_.below(world.shape().workers);
    const int absent_rank = bundle_.manifest().world_rank(bundle::Role::kFfn, absent);
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (rank != absent_rank) AFDEP_RETURN_IF_FAILED(world.enqueue(**slot, rank));
    }
    if (!note((*backend)->synchronize_all(), "absent rank")) return {};
    for (int source = 0; source < world.shape().sources; ++source) {
      const int rank = bundle_.manifest().world_rank(bundle::Role::kAttention, source);
      const Result<void> checked = world.buffer(rank).check();
      const bool waits = sends_to(exchange, source, absent);
      const bool named =
          !checked.ok() && checked.diagnostics().front().code == ErrorCode::kWaitTimedOut &&
          checked.diagnostics().front().message.find(fmt::format("worker {}", absent)) !=
              std::string::npos;
      if (waits && !named) {
        fail(fmt::format("absent rank: attention {} did not say that it waits for worker {}: {}",
                         source, absent,
                         checked.ok() ? "no fault" : to_string(checked.diagnostics())));
      } else if (!waits && !checked.ok()) {
        fail(fmt::format("absent rank: attention {} waits for nobody but says: {}", source,
                         to_string(checked.diagnostics())));
      }
    }
    ++report_.faults;
    return {};
  }

  Result<std::unique_ptr<EmulatorBackend>> make_backend(bool stop_on_stall) const {
    EmulatorOptions options;
    options.schedule.seed = seed_;
    options.schedule.stop_on_stall = stop_on_stall;
    return EmulatorBackend::create(options);
  }

  [[nodiscard]] int bucket(int turn) const {
    return subject_.buckets[static_cast<std::size_t>(turn) % subject_.buckets.size()].tested;
  }

  Routing next_routing() {
    const auto legal = legal_routings();
    return legal[(seed_ + static_cast<std::uint64_t>(routings_++)) % legal.size()];
  }

  ExchangeCase next_case(const World& world, int tested) {
    const std::vector<int> tokens = token_counts(world.shape(), tested, cases_++, random_);
    return make_case(world.shape(), tested, world.receive_rows(tested), tokens, next_routing(),
                     random_);
  }

  Result<void> one_exchange(World& world, Slot& slot, const ExchangeCase& exchange,
                            std::string_view kind) {
    AFDEP_RETURN_IF_FAILED(world.load(slot, exchange));
    AFDEP_RETURN_IF_FAILED(world.enqueue_all(slot, random_));
    if (!note(world.backend().synchronize_all(), kind)) return {};
    ++report_.exchanges;
    if (!note(world.check_all(), kind)) return {};
    return compare(world, slot, exchange, kind);
  }

  Result<void> compare(World& world, const Slot& slot, const ExchangeCase& exchange,
                       std::string_view kind) {
    const Result<std::vector<std::string>> differences = world.compare(slot, exchange);
    if (!differences.ok()) return differences.failure();
    for (const std::string& difference : *differences) {
      fail(fmt::format("{}, bucket {}, routing {}: {}", kind, exchange.bucket,
                       to_string(exchange.routing), difference));
    }
    return {};
  }

  // False, and a failure in the report, if `result` is one.
  bool note(const Result<void>& result, std::string_view doing) {
    if (result.ok()) return true;
    for (const Diagnostic& diagnostic : result.diagnostics()) {
      fail(fmt::format("{}: {}", doing, diagnostic.message));
    }
    return false;
  }

  void fail(std::string message) {
    if (report_.failures.size() >= kMaxFailures) return;
    report_.failures.push_back(
        {ErrorCode::kVerification,
         {subject_.spec.file, 0, 0},
         fmt::format("seed {}: {}", seed_, message),
         fmt::format("repeat: afdep-gen verify {} --seed {}{}{}", subject_.spec.file, seed_,
                     options_.bucket == 0 ? "" : fmt::format(" --bucket {}", options_.bucket),
                     options_.true_size ? " --true-size" : "")});
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

  static bool sends_to(const ExchangeCase& exchange, int source, int worker) {
    return std::ranges::any_of(exchange.received[static_cast<std::size_t>(worker)].rows,
                               [source](const ReceivedRow& row) { return row.source == source; });
  }

  const VerifyOptions& options_;
  const Subject& subject_;
  const bundle::Bundle& bundle_;
  std::uint64_t seed_;
  VerifyReport& report_;
  Random random_;
  int cases_ = 0;
  int routings_ = 0;
};

}  // namespace

int default_seeds(int ranks) { return ranks <= 8 ? 3 : ranks <= 32 ? 2 : 1; }

Result<VerifyReport> verify_bundle(const Subject& subject, const bundle::Bundle& bundle,
                                   const VerifyOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const bundle::Manifest& manifest = bundle.manifest();
  VerifyReport report;
  report.name = manifest.name;
  report.attention_ranks = manifest.attention_ranks;
  report.ffn_ranks = manifest.ffn_ranks;
  report.hidden = manifest.hidden;
  report.experts = manifest.experts;
  report.top_k = manifest.top_k;
  report.buckets = subject.buckets;
  const int seeds = options.seeds == 0 ? default_seeds(manifest.ranks()) : options.seeds;
  for (int i = 0; i < seeds && report.failures.empty(); ++i) {
    const std::uint64_t seed = options.first_seed + static_cast<std::uint64_t>(i);
    Run run(options, subject, bundle, seed, report);
    AFDEP_RETURN_IF_FAILED(run.run());
    ++report.seeds;
    if (options.on_progress) options.on_progress(report.seeds, seeds);
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

Result<VerifyReport> verify(std::string_view text, const std::string& file,
                            const VerifyOptions& options) {
  const Result<Subject> subject = options.true_size ? at_true_size(text, file, options.bucket)
                                                    : reduce(text, file, options.bucket);
  if (!subject.ok()) return subject.failure();
  GenerateOptions emit_only;
  emit_only.emit_only = true;
  const Result<Generated> generated = generate(subject->spec, emit_only);
  if (!generated.ok()) return generated.failure();
  return verify_bundle(*subject, generated->bundle, options);
}

}  // namespace afdep::verify
