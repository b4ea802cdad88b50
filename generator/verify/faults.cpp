#include "generator/verify/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "generator/verify/stage.h"

namespace afdep::verify {
namespace {

constexpr std::chrono::milliseconds kFaultTimeout{20};
constexpr std::uint64_t kMostNs = 30'000'000;  // until the last kernel ends

class FaultRun {
 public:
  FaultRun(const Subject& subject, const bundle::Bundle& bundle, const RunOptions& options,
           Random& random, RunReport& report)
      : subject_(subject), bundle_(bundle), options_(options), random_(random), report_(report) {}

  Result<void> run() {
    const bundle::Manifest& manifest = bundle_.manifest();
    const int worker = manifest.world_rank(bundle::Role::kFfn, random_.below(manifest.ffn_ranks));
    const int source =
        manifest.world_rank(bundle::Role::kAttention, random_.below(manifest.attention_ranks));
    using Kind = emulator::Injection::Kind;
    for (const int victim : {worker, source}) {
      AFDEP_RETURN_IF_FAILED(one("absent", victim, {}, false));
      AFDEP_RETURN_IF_FAILED(one("late", victim, {}, true));
      const auto after = static_cast<std::uint64_t>(1 + random_.below(200));
      AFDEP_RETURN_IF_FAILED(one("dying", victim, {Kind::kDies, victim, after}, false));
      AFDEP_RETURN_IF_FAILED(one("corrupting", victim, {Kind::kCorrupts, victim, 1}, false));
    }
    return {};
  }

 private:
  // `late`: the victim is queued when the others have ended. Without an injection it is never
  // queued with them.
  Result<void> one(const char* name, int victim, const emulator::Injection& injection, bool late) {
    if (!report_.failures.empty()) return {};
    what_ = fmt::format("{} rank {}", name, victim);
    EmulatorOptions emulator_options;
    emulator_options.schedule.seed = options_.seed;
    emulator_options.schedule.explore = options_.explore;
    Result<Stage> stage = make_stage(emulator_options, bundle_, {.device_timeout = kFaultTimeout});
    if (!stage.ok()) return stage.failure();
    EmulatorBackend& backend = *stage->backend;
    World& world = *stage->world;
    // Small and large buckets take turns: a large one has threads that wait several times.
    const TestedBucket& turn =
        runs_++ % 2 == 0 ? subject_.buckets.back() : subject_.buckets.front();
    const int tested = turn.tested;
    const Result<Slot*> slot = world.add_slot(tested);
    if (!slot.ok()) return slot.failure();
    const ExchangeCase exchange = full_case(world, tested);
    AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
    const std::uint64_t start_ns = backend.virtual_time();
    const bool joins = injection.kind != emulator::Injection::Kind::kNone;
    if (joins) backend.inject(injection);
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (joins || rank != victim) AFDEP_RETURN_IF_FAILED(world.enqueue(**slot, rank));
    }
    if (!note(backend, backend.synchronize_all())) return {};
    // All wait from the start on, and who gives up tells the rank's other waits.
    const std::uint64_t took_ns = backend.virtual_time() - start_ns;
    if (took_ns > kMostNs) {
      fail(fmt::format("the others took {} ms to give up, with a timeout of {} ms",
                       took_ns / 1'000'000, kFaultTimeout.count()));
    }
    // A rank may end its exchange before the access at which it would have died.
    const bool happened = !joins || backend.injected();
    check(world, exchange, victim, happened, joins);
    if (late) {
      AFDEP_RETURN_IF_FAILED(world.enqueue(**slot, victim));
      if (!note(backend, backend.synchronize_all())) return {};
    }
    ++report_.faults;
    stage->world.reset();
    return afterwards(backend, tested);
  }

  // Every rank that the victim owes something says so; nobody says anything else.
  void check(World& world, const ExchangeCase& exchange, int victim, bool happened,
             bool takes_part) {
    const bundle::Manifest& manifest = bundle_.manifest();
    const bool victim_sends = manifest.role_of(victim) == bundle::Role::kAttention;
    bool somebody = false;
    bool awaited = false;  // some rank cannot end without the victim
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (rank == victim) continue;
      const Result<void> checked = world.buffer(rank).check();
      const bool peer = manifest.role_of(rank) != manifest.role_of(victim);
      // Workers await the table of every source; a source awaits the workers of its tokens.
      const bool waits =
          peer && !takes_part &&
          (victim_sends || sends_to(exchange, manifest.index_of(rank), manifest.index_of(victim)));
      awaited |= waits;
      if (checked.ok()) {
        if (waits) fail(fmt::format("rank {} did not say that it waits for rank {}", rank, victim));
        continue;
      }
      const Diagnostic& said = checked.diagnostics().front();
      if (said.code != ErrorCode::kWaitTimedOut) {
        fail(
            fmt::format("rank {} says something else: {}", rank, to_string(checked.diagnostics())));
        continue;
      }
      const std::string whom = fmt::format("for {} {}", victim_sends ? "attention" : "worker",
                                           manifest.index_of(victim));
      const bool named = said.message.find(whom + "'s ") != std::string::npos ||
                         said.message.find(whom + " ") != std::string::npos;
      somebody |= named;
      // A peer of the victim may only name the victim, unless its own peers gave up before it did.
      if (!named && !takes_part && peer) {
        fail(fmt::format("rank {} did not name {}: {}", rank, whom, said.message));
      }
    }
    if (happened && !takes_part && awaited && !somebody) {
      fail(fmt::format("nobody named rank {}", victim));
    }
    if (happened && takes_part && !somebody && !finished(world, victim)) {
      fail(fmt::format("nobody named rank {}", victim));
    }
  }

  // True if nobody had to notice: every rank got all that it waited for.
  static bool finished(World& world, int victim) {
    for (int rank = 0; rank < world.ranks(); ++rank) {
      if (rank != victim && !world.buffer(rank).check().ok()) return false;
    }
    return true;
  }

  Result<void> afterwards(EmulatorBackend& backend, int tested) {
    backend.allow_all_stores();
    Result<std::unique_ptr<World>> world = World::create(backend, bundle_, {});
    if (!world.ok()) return world.failure();
    AFDEP_RETURN_IF_FAILED(fence_windows(backend, **world));
    const Result<Slot*> slot = (*world)->add_slot(tested);
    if (!slot.ok()) return slot.failure();
    const ExchangeCase exchange = full_case(**world, tested);
    AFDEP_RETURN_IF_FAILED((*world)->load(**slot, exchange));
    AFDEP_RETURN_IF_FAILED((*world)->enqueue_all(**slot, random_));
    if (!note(backend, backend.synchronize_all())) return {};
    ++report_.exchanges;
    const Result<std::vector<std::string>> wrong = (*world)->compare(**slot, exchange);
    if (!wrong.ok()) return wrong.failure();
    for (const std::string& difference : *wrong) fail("afterwards: " + difference);
    return {};
  }

  ExchangeCase full_case(const World& world, int tested) {
    const int tokens = options_.tokens == 0 ? tested : std::min(tested, options_.tokens);
    const std::vector<int> full(static_cast<std::size_t>(world.shape().sources), tokens);
    return make_case(world.shape(), tested, world.receive_rows(tested), full,
                     Routing::kDistinctWorkers, random_);
  }

  static bool sends_to(const ExchangeCase& exchange, int source, int worker) {
    return std::ranges::any_of(exchange.received[static_cast<std::size_t>(worker)].rows,
                               [source](const ReceivedRow& row) { return row.source == source; });
  }

  bool note(EmulatorBackend& backend, const Result<void>& result) {
    if (result.ok()) return true;
    report_.trace = backend.counts().trace;
    for (const Diagnostic& diagnostic : result.diagnostics()) fail(diagnostic.message);
    return false;
  }
  void fail(const std::string& message) {
    report_.fail(fmt::format("{}: {} (rule 4: a fault is never silent, every wait is bounded)",
                             what_, message));
  }

  const Subject& subject_;
  const bundle::Bundle& bundle_;
  const RunOptions& options_;
  Random& random_;
  RunReport& report_;
  std::string what_;
  int runs_ = 0;
};

}  // namespace

Result<void> run_faults(const Subject& subject, const bundle::Bundle& bundle,
                        const RunOptions& options, Random& random, RunReport& report) {
  return FaultRun(subject, bundle, options, random, report).run();
}

}  // namespace afdep::verify
