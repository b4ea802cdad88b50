// Reverting any one rule of docs/protocol.md must fail with a message that names its hazard.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "generator/verify/verify.h"
#include "tests/mutation/apply.h"
#include "tests/mutation/barrier_program.h"
#include "tests/mutation/judge.h"

namespace afdep::mutation {
namespace {

constexpr const char* kSpec = R"(schema_version: 1
name: rules
model: {hidden_size: 64, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 4, buckets: [4]}
kernel: {num_sms: 2, protocol: flag_in_data}
)";

const Mutant& find(const std::string& name) {
  const auto found =
      std::ranges::find_if(mutants(), [&](const Mutant& each) { return each.name == name; });
  if (found == mutants().end()) throw std::runtime_error("no mutant " + name);
  return *found;
}

struct Reverted {
  const char* mutant;
  std::string hazard;  // a regular expression
};

class EveryRule : public ::testing::TestWithParam<Reverted> {};

TEST_P(EveryRule, IsNamedWhenReverted) {
  const Mutant mutant = find(GetParam().mutant);
  verify::VerifyOptions options;
  options.seeds = 30;
  options.shrink = false;
  int changes = 0;
  options.emit = [&](const plan::ExchangePlan& plan) -> Result<bundle::Bundle> {
    Result<Applied> applied = apply(mutant, plan);
    if (!applied.ok()) return applied.failure();
    changes += applied->changes;
    emulator::replace_device_headers(std::move(applied->headers));
    return std::move(applied->bundle);
  };
  const Result<verify::VerifyReport> report = verify::verify(kSpec, "rules.yaml", options);
  emulator::replace_device_headers({});
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  EXPECT_GT(changes, 0);
  ASSERT_FALSE(report->failures.empty());
  const std::string message = to_string(report->failures.front());
  const std::string whole =
      std::string("rules\\.yaml: error\\[E704\\]: seed [0-9]+ \\([a-z]+\\): ") + GetParam().hazard +
      "\n  note: repeat: afdep-gen verify rules\\.yaml --replay r1\\.[-_A-Za-z0-9]+\n?";
  EXPECT_TRUE(std::regex_match(message, std::regex(whole))) << message << "does not match\n"
                                                            << whole;
}

// The two accesses of a report that names them, by the kernels that make them.
std::string accesses(const std::string& first, const std::string& second,
                     const std::string& missing) {
  const auto by = [](const std::string& kernel) {
    return "rank [0-3] afdep_rules_" + kernel +
           "_b[0-9]+ \\(launch [0-9]+, generation [0-9]+\\) block [0-9]+ thread [0-9]+, at "
           "src/[a-z]+_" +
           kernel + "_b[0-9]+\\.cu:[0-9]+:[0-9]+ \\([a-z_]+, afdep/[a-z]+\\.cuh:[0-9]+\\)";
  };
  return "\n  first: load by " + by(first) + "\n  then: store of 16 bytes by " + by(second) +
         "\n  missing: " + missing;
}

// Each rule by what goes wrong without it: the whole report, but for numbers that the schedule
// decides.
std::vector<Reverted> reverted() {
  const std::string unread =
      "nothing that the reader sent after its load was read before the store";
  const std::string old_or_overwritten =
      "a packet of an old generation was taken for the awaited one \\(docs/protocol\\.md, rule "
      "1\\), or its slot overwritten before its reader is proven done \\(rule 3\\)";
  const std::string place = " at rank [0-3] [a-z_]+\\+0x[0-9a-f]+";
  return {
      {"packets_match_by_parity",
       "eager exchanges: " + old_or_overwritten + place + accesses("[a-z]+", "[a-z]+", unread)},
      {"rows_of_other_tokens",
       "eager, bucket [0-9]+: FFN [01]: row [0-9]+ belongs elsewhere in the same exchange \\(rule "
       "2: a slot is a function of source and token, on both sides\\)"},
      // The reader looked early and saw nothing but the packet of an older exchange, so the report
      // cannot tell whether it took that one, and names both rules.
      {"dispatch_does_not_wait_for_done",
       "eager exchanges: " + old_or_overwritten + place + accesses("[a-z]+", "[a-z]+", unread)},
      {"done_words_are_not_sent",
       "eager exchanges: deadlock: no thread of any rank can run\n"
       "  a done word does not come: without it an inbox half is never written again \\(rule 3: "
       "reuse needs proof\\)"
       "(\n  rank [0-3] afdep_rules_[a-z]+_b[0-9]+ \\(launch [0-9]+\\) block [0-9]+ threads? "
       "[-0-9, ]+: waits in [^\n]*)+(\n  and [0-9]+ more)?"},
      {"waits_are_unbounded",
       "absent rank [0-3]: rank [0-3] afdep_rules_[a-z]+_b[0-9]+ \\(launch [0-9]+\\) block [0-9]+ "
       "thread [0-9]+: livelock: 50000000 accesses of all ranks in a row neither stored nor joined "
       "nor ended anything; this one was a load of (4|16) bytes at [^\n]+ \\(rule 4: a fault is "
       "never silent, every wait is bounded\\)"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, EveryRule, ::testing::ValuesIn(reverted()),
                         [](const ::testing::TestParamInfo<Reverted>& each) {
                           return std::string(each.param.mutant);
                         });

TEST(BarrierProgram, PassesWithTheHeadersAsTheyAre) { EXPECT_EQ(run_barrier_program(1, 50), ""); }

TEST(Mutants, AreManyAndHaveDistinctNames) {
  std::set<std::string> names;
  for (const Mutant& mutant : mutants()) names.insert(mutant.name);
  EXPECT_EQ(names.size(), mutants().size());
  EXPECT_GE(mutants().size(), 40U);
}

TEST(Mutants, OneIsKilled) {
  const Verdict verdict = judge(find("done_words_are_not_sent"), 3);
  EXPECT_TRUE(verdict.applies);
  EXPECT_FALSE(verdict.broken) << verdict.by;
  EXPECT_TRUE(verdict.killed);
}

}  // namespace
}  // namespace afdep::mutation
