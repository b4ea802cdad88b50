// Every schedule of a few exchanges of one token.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generator/plan/plan.h"
#include "generator/verify/reduce.h"
#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep::verify {

struct ExhaustiveOptions {
  // Of one protocol. A search of all schedules that takes more than half of it is given up; in the
  // other half there may be no preemption, then one, ..., and the report says how many.
  double seconds = 60;
  // Loads of a schedule that return another value than the newest, at most: first none, then one,
  // ..., as long as there is time.
  std::uint32_t stale_loads = 1;
  // Only this schedule of `fill`: the choices of a replay token.
  std::vector<std::uint32_t> replay;
  int replay_fill = -1;
};

// One search: every schedule with at most so many stale loads and preemptions.
struct ExhaustivePass {
  std::uint32_t stale_loads = 0;
  std::optional<std::uint32_t> preemptions;  // nothing: any number
  std::uint64_t schedules = 0;               // that differ in the order of two conflicting steps
  std::uint64_t redundant = 0;               // started, then found equivalent to an earlier one
  std::uint64_t longest = 0;                 // steps of one schedule
  bool complete = true;                      // false: out of time
  double seconds = 0;
};

// What was covered of one protocol.
struct ExhaustiveResult {
  plan::Protocol protocol = plan::Protocol::kFlagInData;
  std::vector<ExhaustivePass> passes;
  // Of the schedule that failed; empty if none did.
  std::vector<std::string> failures;
  std::vector<std::uint32_t> choices;
  int fill = -1;
};

// The spec with one bucket of one token for each protocol that its plan uses, one SM a role and
// rows of at most 128 bytes.
Result<std::vector<Subject>> tiny_subjects(std::string_view text, const std::string& file);

// Three exchanges back to back, so that the third reuses the inbox halves of the first: with tokens
// in all of them, in all but the second, and in the second alone; and four with none in the middle
// two. Precondition: the bundle has one bucket.
Result<ExhaustiveResult> explore(const Subject& subject, const bundle::Bundle& bundle,
                                 const ExhaustiveOptions& options);

}  // namespace afdep::verify
