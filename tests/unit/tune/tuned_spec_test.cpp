#include "generator/tune/tuned_spec.h"

#include <gtest/gtest.h>

#include "generator/generate.h"
#include "generator/spec/digest.h"
#include "generator/spec/reader.h"
#include "tests/unit/tune/sample.h"

namespace afdep::tune {
namespace {

using spec::Protocol;

Choice choice() {
  return {.sms = {16, 48},
          .score = 1,
          .buckets = {
              {1, Protocol::kFlagInData, 5.61, std::nullopt, 0},
              {128, Protocol::kChunked, 17, std::nullopt, 0},
              {2048, Protocol::kBulk, 121.5, Variant{2048, Protocol::kChunked, {24, 24}}, 199.25}}};
}

Identity identity() { return {"abc", "0.1.0", "NVIDIA H200", "580.159", "random routing"}; }

TEST(TunedSpec, IsAnOrdinarySpec) {
  const std::string text = tuned_text(sample_spec(), choice(), identity());
  const Result<spec::Spec> read = spec::parse(text, "tuned.yaml");
  ASSERT_TRUE(read.ok()) << to_string(read.diagnostics());
  EXPECT_EQ(read->num_sms.value, (spec::NumSms{16, 48}));
  EXPECT_EQ(read->bucket_protocol.value,
            (std::map<int, Protocol>{
                {1, Protocol::kFlagInData}, {128, Protocol::kChunked}, {2048, Protocol::kBulk}}));
  EXPECT_EQ(read->tuned_on.value, "NVIDIA H200");
  // And what it says is planned.
  const Result<plan::ExchangePlan> plan = plan_exchange(*read);
  ASSERT_TRUE(plan.ok()) << to_string(plan.diagnostics());
  EXPECT_EQ(plan->buckets[2].protocol, plan::Protocol::kBulk);
  for (const plan::Kernel& kernel : plan->buckets[2].kernels) {
    EXPECT_EQ(kernel.grid, kernel.role == plan::Role::kAttention ? 16 : 48);
  }
}

TEST(TunedSpec, KeepsEverythingElse) {
  const spec::Spec given = sample_spec("graph: {mode: \"off\"}\n");
  const Result<spec::Spec> read =
      spec::parse(tuned_text(given, choice(), identity()), "tuned.yaml");
  ASSERT_TRUE(read.ok());
  spec::Spec by_hand = sample_spec(
      "graph: {mode: \"off\"}\n"
      "kernel: {num_sms: {attention: 16, ffn: 48}, protocol: {1: flag_in_data, 128: chunked, "
      "2048: bulk}}\n");
  EXPECT_EQ(spec::digest(*read), spec::digest(by_hand));  // a label makes no other exchange
}

TEST(TunedSpec, SaysWhereItIsFrom) {
  const std::string text = tuned_text(sample_spec(), choice(), identity());
  EXPECT_TRUE(text.starts_with(
      "# Tuned by afdep-bench 0.1.0 on NVIDIA H200, driver 580.159: every rank a stream of that "
      "GPU.\n"
      "# random routing\n"
      "# us an exchange with 16+48 SMs (attention + ffn); before: what the planner takes by "
      "itself\n"
      "#   bucket 1      flag_in_data      5.61\n"
      "#   bucket 128    chunked          17.00\n"
      "#   bucket 2048   bulk            121.50   before: chunked       24+24     199.25\n"
      "schema_version: 1\n"))
      << text;
  EXPECT_EQ(text, tuned_text(sample_spec(), choice(), identity()));
}

TEST(TunedSpec, OnAnotherGpuIsWarnedOfWithBothNames) {
  const spec::Spec spec = sample_spec("kernel: {tuned_on: NVIDIA H100}\n");
  EXPECT_EQ(
      tuned_elsewhere(spec, "NVIDIA H200"),
      "sample.yaml: warning: tuned on NVIDIA H100, this GPU is NVIDIA H200\n"
      "  note: take kernel.num_sms, protocol and tuned_on out and run afdep-bench tune here\n");
  EXPECT_EQ(tuned_elsewhere(spec, "NVIDIA H100"), "");
  EXPECT_EQ(tuned_elsewhere(sample_spec(), "NVIDIA H200"), "");
}

}  // namespace
}  // namespace afdep::tune
