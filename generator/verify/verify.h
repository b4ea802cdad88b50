// Runs every rank's kernels of a spec on the CPU emulator and compares what they deliver with the
// scalar model, bit for bit. What a run covers, and what it cannot: docs/verification.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/generate.h"
#include "generator/verify/exhaustive.h"
#include "generator/verify/reduce.h"
#include "generator/verify/run.h"
#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep::verify {

enum class Explore : std::uint8_t {
  kAll,  // seeds take turns: random, pct, late
  kRandom,
  kPct,
  kLate,
  kExhaustive,  // every schedule of a few exchanges of one token, instead of seeds
};
std::string_view to_string(Explore explore);  // "all", "random", "pct", "late", "exhaustive"

// Turns a plan into the bundle that runs. The default emits it as it is; the mutation suite makes
// mistakes.
using Emit = std::function<Result<bundle::Bundle>(const plan::ExchangePlan& plan)>;

struct VerifyOptions {
  Explore explore = Explore::kAll;
  std::uint64_t first_seed = 1;  // of schedule, routes and payload
  int seeds = 0;                 // first_seed, first_seed + 1, ...; 0: default_seeds()
  int bucket = 0;                // of the spec; 0: all
  bool true_size = false;        // nothing is shrunk
  bool faults = true;            // the first seed also lets ranks fail: the others must name them
  bool shrink = true;            // look for a smaller case that fails too
  std::string replay;            // a token: only the run that it names
  double exhaustive_seconds = 300;  // a protocol, at most
  Emit emit = nullptr;
  std::function<void(int done, int total)> on_progress = nullptr;  // told after each seed
};

struct VerifyReport {
  std::string name;
  int attention_ranks = 0;
  int ffn_ranks = 0;
  int hidden = 0;
  int experts = 0;
  int top_k = 0;
  std::vector<TestedBucket> buckets;
  int seeds = 0;
  std::int64_t exchanges = 0;       // of all ranks together
  std::int64_t replays = 0;         // of them, as graphs
  std::int64_t rows = 0;            // received
  std::int64_t compared = 0;        // values that were compared with the model
  std::int64_t faults = 0;          // ranks that failed on purpose and were reported as they should
  std::vector<LedgerEntry> ledger;  // of exchanges that ran alone; equal to the plan's
  std::vector<ExhaustiveResult> exhaustive;  // a protocol each
  double seconds = 0;
  // Of the first seed that failed, at most ten, as E704; the note says how to repeat it. Behind
  // them those of the smallest case that was found to fail too.
  Diagnostics failures;
  std::string token;  // of the failure, or of the smallest case; empty if there is none
};

// Fewer for more ranks, so that a spec takes a few seconds.
int default_seeds(int ranks);

// A failure is a mistake in the spec or the replay token, or a broken toolchain; what verification
// finds is in the report. `file` names the spec in messages.
Result<VerifyReport> verify(std::string_view text, const std::string& file,
                            const VerifyOptions& options);

// The same for a bundle that was emitted for the subject elsewhere; nothing is shrunk.
Result<VerifyReport> verify_bundle(const Subject& subject, const bundle::Bundle& bundle,
                                   const VerifyOptions& options);

}  // namespace afdep::verify
