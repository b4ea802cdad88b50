// Reverting any one rule of docs/protocol.md must fail with a message that names its hazard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "generator/verify/verify.h"
#include "tests/mutation/apply.h"
#include "tests/mutation/judge.h"

namespace afdep::mutation {
namespace {

using ::testing::HasSubstr;

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
  const char* hazard;
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
  EXPECT_THAT(to_string(report->failures), HasSubstr(GetParam().hazard));
}

INSTANTIATE_TEST_SUITE_P(All, EveryRule,
                         ::testing::Values(Reverted{"packets_match_by_parity", "rule 1"},
                                           Reverted{"rows_in_reverse_slots", "rule 2"},
                                           Reverted{"dispatch_does_not_wait_for_done", "rule 3"},
                                           Reverted{"done_words_are_not_sent", "rule 3"},
                                           Reverted{"waits_are_unbounded", "rule 4"}),
                         [](const ::testing::TestParamInfo<Reverted>& each) {
                           return std::string(each.param.mutant);
                         });

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
