#include "generator/verify/exhaustive.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "generator/generate.h"
#include "generator/spec/overrides.h"
#include "generator/spec/reader.h"
#include "generator/verify/stage.h"
#include "runtime/emulator/exhaustive.h"

namespace afdep::verify {
namespace {

constexpr int kTinyHidden = 64;  // elements
constexpr std::uint64_t kInputSeed = 1;

// Exchanges back to back, and which of them carry tokens: bit i for exchange i. A worker that got
// nothing must still say so, or its source gets ahead of it.
struct Fill {
  int exchanges;
  unsigned tokens;
};
constexpr std::array kFills{Fill{3, 0b111}, Fill{3, 0b101}, Fill{3, 0b010}, Fill{4, 0b1001}};

class OneSchedule {
 public:
  OneSchedule(const bundle::Bundle& bundle, emulator::Exploration& exploration, const Fill& fill)
      : bundle_(bundle), exploration_(exploration), fill_(fill) {}

  // What is wrong with the exchanges, empty if nothing is. A failure is one of the machine.
  Result<std::vector<std::string>> run() {
    EmulatorOptions options;
    options.schedule.explore = emulator::Explore::kExhaustive;
    options.schedule.exploration = &exploration_;
    options.schedule.stop_on_stall = true;
    const Result<Stage> stage = make_stage(options, bundle_, {});
    if (!stage.ok()) return stage.failure();
    World& world = *stage->world;
    Random random(kInputSeed);
    std::vector<Slot*> slots;
    std::vector<ExchangeCase> cases;
    const int bucket = bundle_.manifest().buckets.front().tokens;
    for (int i = 0; i < fill_.exchanges; ++i) {
      const Result<Slot*> slot = world.add_slot(bucket);
      if (!slot.ok()) return slot.failure();
      slots.push_back(*slot);
      const std::vector<int> tokens(static_cast<std::size_t>(world.shape().sources),
                                    (fill_.tokens >> i & 1u) != 0 ? bucket : 0);
      cases.push_back(make_case(world.shape(), bucket, world.receive_rows(bucket), tokens,
                                Routing::kRandom, random));
      AFDEP_RETURN_IF_FAILED(world.load(**slot, cases.back()));
    }
    for (Slot* const slot : slots) {
      for (int rank = 0; rank < world.ranks(); ++rank) {
        AFDEP_RETURN_IF_FAILED(world.enqueue(*slot, rank));
      }
    }
    std::vector<std::string> wrong;
    const Result<void> ran = world.backend().synchronize_all();
    if (exploration_.redundant()) return wrong;
    note(ran, wrong);
    if (ran.ok()) note(world.check_all(), wrong);
    for (std::size_t i = 0; i < slots.size() && wrong.empty(); ++i) {
      const Result<std::vector<std::string>> differences = world.compare(*slots[i], cases[i]);
      if (!differences.ok()) return differences.failure();
      for (const std::string& difference : *differences) {
        wrong.push_back(fmt::format("exchange {}: {}", i + 1, difference));
      }
    }
    return wrong;
  }

 private:
  static void note(const Result<void>& result, std::vector<std::string>& wrong) {
    if (result.ok()) return;
    for (const Diagnostic& diagnostic : result.diagnostics()) wrong.push_back(diagnostic.message);
  }

  const bundle::Bundle& bundle_;
  emulator::Exploration& exploration_;
  const Fill& fill_;
};

}  // namespace

Result<std::vector<Subject>> tiny_subjects(std::string_view text, const std::string& file) {
  const Result<spec::Spec> spec = spec::parse(text, file);
  if (!spec.ok()) return spec.failure();
  const Result<plan::ExchangePlan> plan = plan_exchange(*spec);
  if (!plan.ok()) return plan.failure();
  std::vector<Subject> subjects;
  for (const plan::BucketPlan& bucket : plan->buckets) {
    const auto known = std::ranges::find_if(subjects, [&](const Subject& each) {
      return each.buckets.front().protocol == bucket.protocol;
    });
    if (known != subjects.end()) {
      known->buckets.front().stand_for.push_back(bucket.bucket);
      continue;
    }
    const std::vector<spec::Override> overrides{
        {"model.hidden_size", fmt::format("{}", std::min(plan->hidden, kTinyHidden))},
        {"capacity.tokens_per_rank", "1"},
        {"capacity.buckets", "[1]"},
        {"kernel.num_sms", "1"},
        {"kernel.protocol", std::string(plan::to_string(bucket.protocol))},
    };
    Result<spec::Spec> tiny = spec::with_overrides(text, file, overrides);
    if (!tiny.ok()) return tiny.failure();
    subjects.push_back({std::move(*tiny),
                        {{.tested = 1, .stand_for = {bucket.bucket}, .protocol = bucket.protocol}},
                        std::string(text)});
  }
  return subjects;
}

Result<ExhaustiveResult> explore(const Subject& subject, const bundle::Bundle& bundle,
                                 const ExhaustiveOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto since = [](Clock::time_point from) {
    return std::chrono::duration<double>(Clock::now() - from).count();
  };
  const bool replays = options.replay_fill >= 0;
  ExhaustiveResult result;
  result.protocol = subject.buckets.front().protocol;
  // False: stop, with a schedule that fails or a search that ran out of time. `cut`: whether the
  // bound on preemptions left schedules out.
  const auto search = [&](std::uint32_t stale, std::optional<std::uint32_t> preemptions,
                          double until, bool& cut) -> Result<bool> {
    ExhaustivePass& pass = result.passes.emplace_back();
    pass.stale_loads = stale;
    pass.preemptions = preemptions;
    const auto pass_start = Clock::now();
    cut = false;
    for (int fill = 0; fill < static_cast<int>(kFills.size()) && pass.complete; ++fill) {
      if (replays && fill != options.replay_fill) continue;
      emulator::Exploration exploration(stale,
                                        preemptions.value_or(emulator::Exploration::kUnbounded));
      if (replays) exploration.replay(options.replay);
      for (bool more = true; more && result.failures.empty() && pass.complete;) {
        exploration.begin();
        OneSchedule schedule(bundle, exploration, kFills[static_cast<std::size_t>(fill)]);
        Result<std::vector<std::string>> wrong = schedule.run();
        if (!wrong.ok()) return wrong.failure();
        if (!wrong->empty()) {
          result.failures = std::move(*wrong);
          result.choices = exploration.choices();
          result.fill = fill;
        }
        more = exploration.next();
        pass.complete = !more || since(start) < until;
      }
      cut |= exploration.cut();
      pass.schedules += exploration.counts().schedules;
      pass.redundant += exploration.counts().redundant;
      pass.longest = std::max(pass.longest, exploration.counts().longest);
      if (!result.failures.empty()) break;
    }
    pass.seconds = since(pass_start);
    return result.failures.empty() && pass.complete;
  };
  bool cut = false;
  for (std::uint32_t stale = 0; stale <= (replays ? 0 : options.stale_loads); ++stale) {
    const double until = stale == 0 ? options.seconds / 2 : options.seconds;
    const Result<bool> all = search(stale, std::nullopt, until, cut);
    if (!all.ok()) return all.failure();
    if (*all) continue;
    if (stale != 0 || !result.failures.empty()) break;
    cut = true;
    for (std::uint32_t preemptions = 0; cut; ++preemptions) {
      const Result<bool> level = search(0, preemptions, options.seconds, cut);
      if (!level.ok()) return level.failure();
      if (!*level) break;
    }
    break;
  }
  return result;
}

}  // namespace afdep::verify
