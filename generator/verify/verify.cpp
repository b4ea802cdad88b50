#include "generator/verify/verify.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "generator/verify/session.h"

namespace afdep::verify {
namespace {

constexpr double kShrinkSeconds = 20;

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Verification {
 public:
  explicit Verification(const Session& session) : session_(session), options_(session.options()) {}

  Result<VerifyReport> run() {
    const auto start = std::chrono::steady_clock::now();
    Result<void> done;
    if (!options_.replay.empty()) {
      done = replay();
    } else if (options_.explore == Explore::kExhaustive) {
      done = exhaustive(nullptr);
    } else {
      done = seeds();
    }
    if (!done.ok()) return done.failure();
    report_.seconds = since(start);
    return std::move(report_);
  }

  // Of a bundle made elsewhere.
  Result<VerifyReport> run(const Case& made) {
    const auto start = std::chrono::steady_clock::now();
    AFDEP_RETURN_IF_FAILED(seeds_of(made, false));
    report_.seconds = since(start);
    return std::move(report_);
  }

 private:
  Result<void> seeds() {
    Result<Case> made = session_.make_case(Limits{});
    if (!made.ok()) return made.failure();
    return seeds_of(*made, options_.shrink);
  }

  Result<void> seeds_of(const Case& made, bool shrink) {
    describe(made);
    const int seeds = options_.seeds == 0 ? default_seeds(made.plan.ranks()) : options_.seeds;
    for (int i = 0; i < seeds && report_.failures.empty(); ++i) {
      RunOptions run;
      run.seed = options_.first_seed + static_cast<std::uint64_t>(i);
      run.explore = strategy_of(options_.explore, run.seed);
      run.faults = options_.faults && i == 0;
      run.whole = i == 0;
      AFDEP_RETURN_IF_FAILED(one(made, run, {}, shrink));
      ++report_.seeds;
      if (options_.on_progress) options_.on_progress(report_.seeds, seeds);
    }
    return {};
  }

  Result<void> one(const Case& made, const RunOptions& run, const Limits& limits, bool shrink) {
    Result<RunReport> ran = verify::run(made.subject, made.plan, made.bundle, run);
    if (!ran.ok()) return ran.failure();
    report_.exchanges += ran->exchanges;
    report_.replays += ran->replays;
    report_.rows += ran->rows;
    report_.compared += ran->compared;
    report_.faults += ran->faults;
    report_.ledger.insert(report_.ledger.end(), ran->ledger.begin(), ran->ledger.end());
    if (ran->failures.empty()) return {};
    AFDEP_RETURN_IF_FAILED(report(fmt::format("seed {}", run.seed), run, limits, *ran));
    if (!shrink) return {};
    const Result<std::optional<Shrunk>> smaller =
        verify::shrink(session_, made.plan, run, kShrinkSeconds);
    if (!smaller.ok()) return smaller.failure();
    if (!smaller->has_value()) return {};
    const Shrunk& shrunk = **smaller;
    const std::string size = fmt::format(
        "{}A{}F, {} exchange{}{}",
        shrunk.limits.attention_ranks == 0 ? made.plan.attention_ranks
                                           : shrunk.limits.attention_ranks,
        shrunk.limits.ffn_ranks == 0 ? made.plan.ffn_ranks : shrunk.limits.ffn_ranks,
        shrunk.limits.exchanges, shrunk.limits.exchanges == 1 ? "" : "s",
        shrunk.limits.tokens == 0 ? std::string()
                                  : fmt::format(", {} token{} a source", shrunk.limits.tokens,
                                                shrunk.limits.tokens == 1 ? "" : "s"));
    return report(fmt::format("fails too with {}, seed {}", size, shrunk.run.seed), shrunk.run,
                  shrunk.limits, shrunk.report);
  }

  Result<void> replay() {
    const Result<Token> token = decode(options_.replay);
    if (!token.ok()) return token.failure();
    const Result<Token> mine = session_.token({}, {});
    if (!mine.ok()) return mine.failure();
    AFDEP_RETURN_IF_FAILED(check_token(*token, mine->version, mine->spec_digest, session_.file()));
    if (token->explore == static_cast<std::uint8_t>(emulator::Explore::kExhaustive)) {
      return exhaustive(&*token);
    }
    VerifyOptions options = options_;
    options.bucket = token->bucket;
    options.true_size = token->true_size;
    const Session session(session_.text(), session_.file(), options);
    const Limits limits{.attention_ranks = token->attention_ranks,
                        .ffn_ranks = token->ffn_ranks,
                        .tokens = token->tokens,
                        .exchanges = token->exchanges};
    Result<Case> made = session.make_case(limits);
    if (!made.ok()) return made.failure();
    describe(*made);
    RunOptions run;
    run.seed = token->seed;
    run.explore = static_cast<emulator::Explore>(token->explore);
    run.faults = token->faults;
    run.whole = token->whole;
    run.tokens = token->tokens;
    run.exchanges = token->exchanges;
    Verification again(session);
    AFDEP_RETURN_IF_FAILED(again.one(*made, run, limits, false));
    report_.seeds = 1;
    report_.exchanges = again.report_.exchanges;
    report_.rows = again.report_.rows;
    report_.compared = again.report_.compared;
    report_.failures = std::move(again.report_.failures);
    report_.token = again.report_.token;
    if (report_.failures.empty()) {
      complain("the replayed run does not fail",
               "the kernels have changed since the token was printed");
    } else if (again.trace_ != token->trace) {
      complain("the replayed run fails, but not at the same instruction as the one of the token",
               "the kernels have changed since the token was printed");
    }
    return {};
  }

  // `token`: only its schedule; null: all.
  Result<void> exhaustive(const Token* token) {
    Result<std::vector<Subject>> subjects = tiny_subjects(session_.text(), session_.file());
    if (!subjects.ok()) return subjects.failure();
    for (std::size_t i = 0; i < subjects->size() && report_.failures.empty(); ++i) {
      if (token != nullptr && token->search != static_cast<int>(i)) continue;
      Result<Case> made = session_.make_case(std::move((*subjects)[i]));
      if (!made.ok()) return made.failure();
      std::vector<TestedBucket> buckets = report_.buckets;
      describe(*made);
      buckets.insert(buckets.end(), report_.buckets.begin(), report_.buckets.end());
      report_.buckets = std::move(buckets);
      ExhaustiveOptions options;
      options.seconds = options_.exhaustive_seconds;
      if (token != nullptr) {
        options.replay = token->choices;
        options.replay_fill = token->fill;
      }
      Result<ExhaustiveResult> result = explore(made->subject, made->bundle, options);
      if (!result.ok()) return result.failure();
      if (!result->failures.empty()) {
        RunOptions run;
        run.explore = emulator::Explore::kExhaustive;
        Result<Token> printed = session_.token(run, {});
        if (!printed.ok()) return printed.failure();
        printed->search = static_cast<int>(i);
        printed->fill = result->fill;
        printed->choices = result->choices;
        report_.token = encode(*printed);
        for (const std::string& failure : result->failures) {
          complain(fmt::format("schedule {} of {}: {}", result->passes.back().schedules,
                               plan::to_string(result->protocol), failure),
                   repeat());
        }
      } else if (token != nullptr) {
        complain("the replayed schedule does not fail",
                 "the kernels have changed since the token was printed");
      }
      report_.exhaustive.push_back(std::move(*result));
      if (options_.on_progress) {
        options_.on_progress(static_cast<int>(i) + 1, static_cast<int>(subjects->size()));
      }
    }
    return {};
  }

  void describe(const Case& made) {
    const bundle::Manifest& manifest = made.bundle.manifest();
    report_.name = manifest.name;
    report_.attention_ranks = manifest.attention_ranks;
    report_.ffn_ranks = manifest.ffn_ranks;
    report_.hidden = manifest.hidden;
    report_.experts = manifest.experts;
    report_.top_k = manifest.top_k;
    report_.buckets = made.subject.buckets;
  }

  Result<void> report(const std::string& what, const RunOptions& run, const Limits& limits,
                      const RunReport& found) {
    trace_ = found.trace;
    Result<Token> token = session_.token(run, limits);
    if (!token.ok()) return token.failure();
    token->trace = found.trace;
    report_.token = encode(*token);
    for (const std::string& failure : found.failures) {
      complain(fmt::format("{} ({}): {}", what, emulator::to_string(run.explore), failure),
               repeat());
    }
    return {};
  }

  [[nodiscard]] std::string repeat() const {
    return fmt::format("repeat: afdep-gen verify {} --replay {}", session_.file(), report_.token);
  }

  void complain(std::string message, std::string note) {
    report_.failures.push_back(
        {ErrorCode::kVerification, {session_.file(), 0, 0}, std::move(message), std::move(note)});
  }

  const Session& session_;
  const VerifyOptions& options_;
  VerifyReport report_;
  std::uint64_t trace_ = 0;  // of the newest failing run
};

}  // namespace

std::string_view to_string(Explore explore) {
  switch (explore) {
    case Explore::kAll:
      return "all";
    case Explore::kRandom:
      return "random";
    case Explore::kPct:
      return "pct";
    case Explore::kLate:
      return "late";
    case Explore::kExhaustive:
      return "exhaustive";
  }
  return "explore";
}

int default_seeds(int ranks) { return ranks <= 8 ? 3 : ranks <= 32 ? 2 : 1; }

Result<VerifyReport> verify(std::string_view text, const std::string& file,
                            const VerifyOptions& options) {
  const Session session(text, file, options);
  return Verification(session).run();
}

Result<VerifyReport> verify_bundle(const Subject& subject, const bundle::Bundle& bundle,
                                   const VerifyOptions& options) {
  Result<plan::ExchangePlan> plan = plan_exchange(subject.spec);
  if (!plan.ok()) return plan.failure();
  const Session session(subject.text, subject.spec.file, options);
  return Verification(session).run(Case{subject, std::move(*plan), bundle});
}

}  // namespace afdep::verify
