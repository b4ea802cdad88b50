// What became of a cell.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/support/diagnostic.h"

namespace afdep::matrix {

enum class Outcome : std::uint8_t {
  kPassed,
  kExpected,  // refused with the code that the matrix expects
  kRefused,   // not a legal spec, or not one that this build serves
  kFailed,    // wrong data, a deadlock, a kernel over its ceilings; or not refused as expected
  kError,     // the toolchain or the machine
  kCrashed,   // the cell's process ended without a result
  kTimeout,   // stopped at the time limit
  kNotRun,    // the run was interrupted before
};
std::string_view to_string(Outcome outcome);  // "passed", "expected", ..., "not run"
std::optional<Outcome> outcome_from(std::string_view text);

inline constexpr Outcome kOutcomes[] = {Outcome::kPassed,  Outcome::kExpected, Outcome::kRefused,
                                        Outcome::kFailed,  Outcome::kError,    Outcome::kCrashed,
                                        Outcome::kTimeout, Outcome::kNotRun};

// Passed, or refused as expected.
bool is_good(Outcome outcome);

// Named lines for a reader: what was verified, what the plan says.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct CellResult {
  Outcome outcome = Outcome::kNotRun;
  double seconds = 0;
  double cpu_seconds = 0;
  bool resumed = false;     // of an earlier run
  Diagnostics diagnostics;  // of a refusal, expected or not, or a failure
  std::string trace;        // what a crashed cell said last
  Facts verified;
  Facts ledger;  // what crossed in exchanges that ran alone
  Facts figures;
};

// The first diagnostic as one line; empty if there is none.
std::string message_of(const CellResult& result);

// JSON text of a result without `resumed`, and back; nothing if the text is not such.
std::string to_json(const CellResult& result);
std::optional<CellResult> result_from_json(std::string_view text);

}  // namespace afdep::matrix
