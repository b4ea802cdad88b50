// One seed of verification: exchanges of every kind under one schedule, compared with the model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/plan/plan.h"
#include "generator/verify/prediction.h"
#include "generator/verify/reduce.h"
#include "runtime/bundle/bundle.h"
#include "runtime/emulator/strategy.h"
#include "runtime/support/result.h"

namespace afdep::verify {

struct RunOptions {
  std::uint64_t seed = 1;  // of schedule, routes and payload
  emulator::Explore explore = emulator::Explore::kRandom;
  int tokens = 0;     // of a source, at most; 0: the bucket
  int exchanges = 0;  // only so many, eager and back to back; 0: every kind of exchange
  bool faults = false;
  // Every kind of exchange; false: three eager ones and one other kind, by turns.
  bool whole = true;
};

// Traffic of one exchange that ran alone.
struct LedgerEntry {
  int bucket = 0;
  Routing routing = Routing::kRandom;
  int tokens = 0;  // of all sources
  ExchangeTraffic seen;
};

struct RunReport {
  std::int64_t exchanges = 0;
  std::int64_t replays = 0;
  std::int64_t rows = 0;
  std::int64_t compared = 0;
  std::int64_t faults = 0;
  std::vector<LedgerEntry> ledger;
  std::vector<std::string> failures;  // what verification found, at most kMaxFailures
  std::uint64_t trace = 0;            // hash of the failing schedule's choices so far

  static constexpr std::size_t kMaxFailures = 10;
  // Ignored beyond kMaxFailures.
  void fail(std::string message);
  // False, and failures, if `result` is one.
  bool note(const Result<void>& result, std::string_view doing);
};

// A failure is one of the machine; what verification finds is in the report.
Result<RunReport> run(const Subject& subject, const plan::ExchangePlan& plan,
                      const bundle::Bundle& bundle, const RunOptions& options);

}  // namespace afdep::verify
