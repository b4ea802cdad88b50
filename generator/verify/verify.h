// Runs every rank's kernels of a spec on the CPU emulator and compares what they deliver with the
// scalar model, bit for bit. What a run covers, and what it cannot: docs/verification.md.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/verify/reduce.h"
#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep::verify {

struct VerifyOptions {
  std::uint64_t first_seed = 1;  // of schedule, routes and payload
  int seeds = 0;                 // first_seed, first_seed + 1, ...; 0: default_seeds()
  int bucket = 0;                // of the spec; 0: all
  bool true_size = false;        // nothing is shrunk
  bool faults = true;            // also let a rank stay away: the others must name it
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
  std::int64_t exchanges = 0;  // of all ranks together
  std::int64_t replays = 0;    // of them, as graphs
  std::int64_t rows = 0;       // received
  std::int64_t compared = 0;   // values that were compared with the model
  std::int64_t faults = 0;     // absent ranks that were reported as they should
  double seconds = 0;
  // Of the first seed that failed, at most ten, as E704; the note says how to repeat it.
  Diagnostics failures;
};

// Fewer for more ranks, so that a spec takes a few seconds.
int default_seeds(int ranks);

// Runs a bundle that was emitted for the subject, by this program or, in tests of the verifier,
// with a mistake in it.
Result<VerifyReport> verify_bundle(const Subject& subject, const bundle::Bundle& bundle,
                                   const VerifyOptions& options);

// A failure is a mistake in the spec or a broken toolchain; what verification finds is in the
// report. `file` names the spec in messages.
Result<VerifyReport> verify(std::string_view text, const std::string& file,
                            const VerifyOptions& options);

}  // namespace afdep::verify
