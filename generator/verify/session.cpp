#include "generator/verify/session.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "generator/emit/emit.h"
#include "generator/manifest.h"
#include "generator/plan/text.h"
#include "generator/spec/digest.h"
#include "generator/spec/reader.h"

namespace afdep::verify {

Result<bundle::Bundle> emit_as_planned(const plan::ExchangePlan& plan) {
  const std::vector<KernelSource> sources = emit::emit(plan);
  return bundle::make_bundle(manifest_of(plan, sources, {}),
                             files_of(plan::print(plan), sources, {}));
}

Result<Case> Session::make_case(Subject subject) const {
  Result<plan::ExchangePlan> plan = plan_exchange(subject.spec);
  if (!plan.ok()) return plan.failure();
  Result<bundle::Bundle> bundle = options_.emit ? options_.emit(*plan) : emit_as_planned(*plan);
  if (!bundle.ok()) return bundle.failure();
  return Case{std::move(subject), std::move(*plan), std::move(*bundle)};
}

Result<Case> Session::make_case(const Limits& limits) const {
  std::vector<spec::Override> overrides;
  if (limits.attention_ranks != 0) {
    overrides.push_back(
        {"topology.ratio", fmt::format("\"{}A{}F\"", limits.attention_ranks, limits.ffn_ranks)});
  }
  Result<Subject> subject = options_.true_size
                                ? at_true_size(text_, file_, options_.bucket, overrides)
                                : reduce(text_, file_, options_.bucket, overrides);
  if (!subject.ok()) return subject.failure();
  return make_case(std::move(*subject));
}

Result<Token> Session::token(const RunOptions& run, const Limits& limits) const {
  const Result<spec::Spec> spec = spec::parse(text_, file_);
  if (!spec.ok()) return spec.failure();
  Token token;
  token.version = AFDEP_VERSION;
  token.spec_digest = spec::digest(*spec);
  token.explore = static_cast<std::uint8_t>(run.explore);
  token.seed = run.seed;
  token.bucket = options_.bucket;
  token.true_size = options_.true_size;
  token.faults = run.faults;
  token.whole = run.whole;
  token.attention_ranks = limits.attention_ranks;
  token.ffn_ranks = limits.ffn_ranks;
  token.tokens = limits.tokens;
  token.exchanges = limits.exchanges;
  return token;
}

emulator::Explore strategy_of(Explore explore, std::uint64_t seed) {
  static constexpr std::array kTurns{emulator::Explore::kLate, emulator::Explore::kRandom,
                                     emulator::Explore::kPct};
  switch (explore) {
    case Explore::kRandom:
      return emulator::Explore::kRandom;
    case Explore::kPct:
      return emulator::Explore::kPct;
    case Explore::kLate:
      return emulator::Explore::kLate;
    case Explore::kExhaustive:
      return emulator::Explore::kExhaustive;
    case Explore::kAll:
      break;
  }
  return kTurns[seed % kTurns.size()];
}

}  // namespace afdep::verify
