// What the parts of a verification share: the spec, how its plans become bundles, and cases of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/verify/run.h"
#include "generator/verify/token.h"
#include "generator/verify/verify.h"

namespace afdep::verify {

// A subject, ready to run.
struct Case {
  Subject subject;
  plan::ExchangePlan plan;
  bundle::Bundle bundle;
};

// What may be smaller than the spec says; 0: as it says.
struct Limits {
  int attention_ranks = 0;
  int ffn_ranks = 0;
  int tokens = 0;
  int exchanges = 0;
};

class Session {
 public:
  // All three must outlive it.
  Session(std::string_view text, const std::string& file, const VerifyOptions& options)
      : text_(text), file_(file), options_(options) {}

  Result<Case> make_case(const Limits& limits) const;
  Result<Case> make_case(Subject subject) const;
  // The token of a run of this spec.
  [[nodiscard]] Result<Token> token(const RunOptions& run, const Limits& limits) const;

  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  [[nodiscard]] const VerifyOptions& options() const { return options_; }

 private:
  std::string_view text_;
  const std::string& file_;
  const VerifyOptions& options_;
};

// The bundle of a plan, as generated.
Result<bundle::Bundle> emit_as_planned(const plan::ExchangePlan& plan);

// The strategy of a seed.
emulator::Explore strategy_of(Explore explore, std::uint64_t seed);

struct Shrunk {
  Limits limits;
  RunOptions run;
  RunReport report;
};

// The smallest case that fails too: fewest ranks, then tokens, then exchanges. None if nothing
// smaller fails within `seconds`.
Result<std::optional<Shrunk>> shrink(const Session& session, const plan::ExchangePlan& failed,
                                     const RunOptions& run, double seconds);

}  // namespace afdep::verify
