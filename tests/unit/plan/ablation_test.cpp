// What each ablation puts into a plan.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "generator/generate.h"
#include "generator/plan/check.h"
#include "generator/plan/sizing.h"
#include "generator/spec/reader.h"

namespace afdep::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kAll =
    "entry_barrier: true, exit_barrier: true, dummy_experts: true, union_buffers: true, "
    "separate_epilogues: true";

ExchangePlan plan_of(const std::string& ablation, const std::string& ratio = "2A2F",
                     const std::string& protocol = "flag_in_data") {
  const std::string text = fmt::format(R"(schema_version: 1
name: reverted
model: {{hidden_size: 2048, num_experts: 128, top_k: 8}}
topology: {{ratio: "{}"}}
capacity: {{tokens_per_rank: 32, buckets: [32]}}
kernel: {{protocol: {}}}
ablation: {{{}}}
)",
                                       ratio, protocol, ablation);
  const Result<spec::Spec> spec = spec::parse(text, "reverted.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  Result<ExchangePlan> plan = plan_exchange(*spec);
  if (!plan.ok()) throw std::runtime_error(to_string(plan.diagnostics()));
  return std::move(*plan);
}

std::vector<std::string> kernels_of(const ExchangePlan& plan, Role role) {
  std::vector<std::string> names;
  for (const Kernel& kernel : plan.buckets[0].kernels) {
    if (kernel.role == role) names.emplace_back(to_string(kernel.operation));
  }
  return names;
}

std::string path_of(const ExchangePlan& plan) {
  std::string text;
  for (const Hop& hop : plan.buckets[0].critical_path) {
    text += fmt::format("{} -{}-> {}; ", to_string(hop.from), hop.signal, to_string(hop.to));
  }
  return text;
}

TEST(Ablation, NothingRevertedHasTwoKernelsARankAndTwoHops) {
  const ExchangePlan plan = plan_of("");
  EXPECT_FALSE(plan.ablation.any());
  EXPECT_THAT(kernels_of(plan, Role::kAttention), ElementsAre("dispatch", "collect"));
  EXPECT_THAT(kernels_of(plan, Role::kFfn), ElementsAre("receive", "reply"));
  EXPECT_EQ(path_of(plan), "dispatch -rows-> receive; reply -replies-> collect; ");
  EXPECT_EQ(plan.buckets[0].floor.sync_us, 0);
}

TEST(Ablation, EpiloguesAreKernelsBehindReceiveAndCollect) {
  const ExchangePlan plan = plan_of("separate_epilogues: true");
  EXPECT_THAT(kernels_of(plan, Role::kAttention), ElementsAre("dispatch", "collect", "reduce"));
  EXPECT_THAT(kernels_of(plan, Role::kFfn), ElementsAre("receive", "reply", "expand"));
  EXPECT_EQ(plan.buckets[0].critical_path.size(), 2U);
  // Three launches a rank, not two, at 0.47 us.
  EXPECT_NEAR(plan.buckets[0].floor.launch_us, 3 * 0.47, 1e-9);
}

TEST(Ablation, AllRevertedLaunchesFourKernelsOnEveryRank) {
  for (const char* protocol : {"flag_in_data", "chunked", "bulk"}) {
    const ExchangePlan plan = plan_of(kAll, "2A2F", protocol);
    EXPECT_THAT(kernels_of(plan, Role::kAttention),
                ElementsAre("dispatch", "collect", "reduce", "idle_expand"));
    EXPECT_THAT(kernels_of(plan, Role::kFfn),
                ElementsAre("receive", "reply", "expand", "idle_reduce"));
    EXPECT_NEAR(plan.buckets[0].floor.launch_us, 4 * 0.47, 1e-9);
    // An entry and an exit barrier in either part, 1 us each.
    EXPECT_NEAR(plan.buckets[0].floor.sync_us, 4.0, 1e-9);
  }
}

TEST(Ablation, BarriersLengthenTheCriticalPath) {
  EXPECT_EQ(path_of(plan_of("entry_barrier: true")),
            "receive -entry_dispatch-> dispatch; dispatch -rows-> receive; "
            "reply -entry_combine-> reply; reply -replies-> collect; ");
  // With one worker the entry to the second part is not on the way: the source came long ago.
  EXPECT_EQ(path_of(plan_of("entry_barrier: true", "2A1F")),
            "receive -entry_dispatch-> dispatch; dispatch -rows-> receive; "
            "reply -replies-> collect; ");
  // Entry, table and exit of the first part; entry, counts and exit of the second.
  EXPECT_EQ(plan_of(kAll).buckets[0].critical_path.size(), 6U);
  // The exit of the first part comes behind the table; replies come behind that exit.
  EXPECT_EQ(plan_of("exit_barrier: true").buckets[0].critical_path.size(), 3U);
  EXPECT_EQ(plan_of("dummy_experts: true").buckets[0].critical_path.size(), 2U);
}

TEST(Ablation, BlocksOfAKernelWithABarrierMustBeResident) {
  const ExchangePlan barriers = plan_of("exit_barrier: true");
  for (const Kernel& kernel : barriers.buckets[0].kernels) {
    EXPECT_TRUE(kernel.grid_sync) << kernel.symbol;
  }
  const ExchangePlan counts = plan_of("dummy_experts: true");
  for (const Kernel& kernel : counts.buckets[0].kernels) {
    EXPECT_FALSE(kernel.grid_sync) << kernel.symbol;
  }
}

TEST(Ablation, UnionBuffersTakeWhatAWindowWithoutRolesTakes) {
  for (const char* ratio : {"2A2F", "3A1F", "1A2F", "7A1F"}) {
    const ExchangePlan plain = plan_of("", ratio);
    const ExchangePlan reverted = plan_of("union_buffers: true", ratio);
    EXPECT_EQ(reverted.window_bytes, union_window_bytes(plain)) << ratio;
    EXPECT_EQ(union_window_bytes(reverted), reverted.window_bytes) << ratio;
    EXPECT_GT(reverted.window_bytes, plain.window_bytes) << ratio;
  }
}

std::string broken_by(Operation operation, const auto& change) {
  ExchangePlan plan = plan_of("entry_barrier: true");
  for (Kernel& kernel : plan.buckets[0].kernels) {
    if (kernel.operation == operation) change(kernel);
  }
  const Result<void> checked = check(plan);
  return checked.ok() ? "" : to_string(checked.diagnostics());
}

TEST(Ablation, CheckRefusesABarrierThatWouldHang) {
  const auto barrier = [](const Step& step) { return step.signal == "entry_dispatch"; };
  EXPECT_THAT(
      broken_by(Operation::kReceive, [&](Kernel& kernel) { std::erase_if(kernel.steps, barrier); }),
      HasSubstr("\"pairing\": bucket 32: 0 kernels of ffn ranks await \"entry_dispatch\", "
                "expected 1"));
  EXPECT_THAT(broken_by(Operation::kDispatch,
                        [&](Kernel& kernel) {
                          const auto first = std::ranges::find_if(kernel.steps, barrier);
                          std::iter_swap(first, first + 1);
                        }),
              HasSubstr("\"pairing\": bucket 32: dispatch awaits \"entry_dispatch\" before it "
                        "publishes it: all ranks would wait for each other"));
  EXPECT_THAT(broken_by(Operation::kReply, [](Kernel& kernel) { kernel.grid_sync = false; }),
              HasSubstr("\"meeting\": bucket 32: reply awaits \"entry_combine\", but its CTAs need "
                        "not be resident"));
}

TEST(Ablation, CheckRefusesMeetingPlacesThatDiffer) {
  ExchangePlan plan = plan_of("dummy_experts: true");
  Region& counts = plan.ffn.window.front();
  ASSERT_EQ(counts.name, "no_rows_dispatch");
  counts.halves = 1;
  const Result<void> checked = check(plan);
  ASSERT_FALSE(checked.ok());
  EXPECT_THAT(to_string(checked.diagnostics()),
              HasSubstr("\"meeting\": bucket 32: \"no_rows_dispatch\" is at 0 of the attention "
                        "window and at 0 of the ffn window, or of another shape there"));
}

}  // namespace
}  // namespace afdep::plan
