// Traced kernels on the emulator: what they record, and that they stay as correct as untraced ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>

#include "generator/generate.h"
#include "generator/plan/trace.h"
#include "generator/spec/reader.h"
#include "generator/trace/chrome.h"
#include "generator/trace/stamps.h"
#include "generator/verify/session.h"
#include "generator/verify/stage.h"
#include "generator/verify/verify.h"

namespace afdep::trace {
namespace {

std::string spec_text(const std::string& protocol) {
  return "schema_version: 1\nname: stamped\n"
         "model: {hidden_size: 64, num_experts: 4, top_k: 2}\n"
         "topology: {ratio: \"2A2F\"}\n"
         "capacity: {tokens_per_rank: 4}\n"
         "kernel: {num_sms: 2, protocol: {4: " +
         protocol + "}}\n";
}

Generated generate_traced(const std::string& protocol) {
  const Result<spec::Spec> spec = spec::parse(spec_text(protocol), "traced.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  Result<Generated> generated = generate(*spec, {.emit_only = true, .trace = true});
  if (!generated.ok()) throw std::runtime_error(to_string(generated.diagnostics()));
  return std::move(*generated);
}

class Traced : public ::testing::TestWithParam<std::string> {
 protected:
  // `exchanges` of them, one after another, every source with four tokens.
  std::vector<Stamp> run(int exchanges) {
    generated_ = generate_traced(GetParam());
    Result<verify::Stage> stage = verify::make_stage({}, generated_.bundle, {});
    if (!stage.ok()) throw std::runtime_error(to_string(stage.diagnostics()));
    verify::World& world = *stage->world;
    const Result<verify::Slot*> slot = world.add_slot(4);
    verify::Random random(1);
    for (int i = 0; i < exchanges; ++i) {
      const verify::ExchangeCase exchange = verify::make_case(
          world.shape(), 4, world.receive_rows(4), {4, 4}, verify::Routing::kRandom, random);
      EXPECT_TRUE(world.load(**slot, exchange).ok());
      EXPECT_TRUE(world.enqueue_all(**slot, random).ok());
      EXPECT_TRUE(world.backend().synchronize_all().ok());
      const auto differences = world.compare(**slot, exchange);
      EXPECT_TRUE(differences.ok());
      EXPECT_TRUE(differences->empty());
    }
    Result<std::vector<Stamp>> stamps = read_stamps(world, **slot);
    EXPECT_TRUE(stamps.ok());
    place_in_time(*stamps);
    EXPECT_TRUE(world.close_all().ok());
    return std::move(*stamps);
  }

  Generated generated_;
};

TEST_P(Traced, EveryWarpOfEveryKernelStartsAwaitsAndEnds) {
  const std::vector<Stamp> stamps = run(3);
  const std::vector<Stamp> one = of_exchange(stamps, settled_generation(stamps));
  std::map<std::tuple<int, bundle::Operation, int, int>, std::set<TraceStep>> seen;
  for (const Stamp& stamp : one) {
    const std::tuple warp(stamp.rank, stamp.operation, stamp.block, stamp.warp);
    EXPECT_TRUE(seen[warp].insert(stamp.step).second);
  }
  std::size_t warps = 0;
  for (const bundle::Kernel& kernel : generated_.bundle.manifest().buckets.front().kernels) {
    if (kernel.operation == bundle::Operation::kCollectView) continue;
    warps += 2 * static_cast<std::size_t>(kernel.grid * kernel.threads / 32);  // two ranks a role
  }
  EXPECT_EQ(seen.size(), warps);
  for (const auto& [warp, steps] : seen) {
    EXPECT_TRUE(steps.contains(kTraceStart));
    EXPECT_TRUE(steps.contains(kTraceAwaited));
    EXPECT_TRUE(steps.contains(kTraceEnd));
  }
}

TEST_P(Traced, TimesKeepTheOrderOfTheProtocol) {
  const std::vector<Stamp> stamps = run(3);
  const std::vector<Stamp> one = of_exchange(stamps, settled_generation(stamps));
  // A warp passes its steps one after another.
  for (std::size_t i = 1; i < one.size(); ++i) {
    const Stamp& a = one[i - 1];
    const Stamp& b = one[i];
    if (std::tuple(a.rank, a.operation, a.block, a.warp) !=
        std::tuple(b.rank, b.operation, b.block, b.warp)) {
      continue;
    }
    EXPECT_LT(a.step, b.step);
    EXPECT_LE(a.at_ns, b.at_ns);
  }
  const auto earliest = [&](bundle::Operation operation, TraceStep step) {
    double at = 1e18;
    for (const Stamp& stamp : one) {
      if (stamp.operation == operation && stamp.step == step) at = std::min(at, stamp.at_ns);
    }
    EXPECT_LT(at, 1e18) << bundle::to_string(operation) << " never passed " << name_of(step);
    return at;
  };
  const auto latest = [&](bundle::Operation operation, TraceStep step) {
    double at = 0;
    for (const Stamp& stamp : one) {
      if (stamp.operation == operation && stamp.step == step) at = std::max(at, stamp.at_ns);
    }
    return at;
  };
  using enum bundle::Operation;
  // No row is seen before a source may send, no reply before a worker has begun to reply.
  EXPECT_LT(earliest(kDispatch, kTraceDoneSeen), latest(kReceive, kTraceTableSeen));
  EXPECT_LT(earliest(kDispatch, kTraceDoneSeen), earliest(kReceive, kTraceFirstRow));
  EXPECT_LT(earliest(kReceive, kTraceFirstRow), earliest(kReply, kTraceFirstReply));
  EXPECT_LT(earliest(kReply, kTraceAwaited), earliest(kCollect, kTraceReplySeen));
  // On a rank's stream the second kernel goes on when the first has ended.
  for (int rank = 0; rank < 4; ++rank) {
    double first_ends = 0;
    double second_awaited = 1e18;
    for (const Stamp& stamp : one) {
      if (stamp.rank != rank) continue;
      const bool first = stamp.operation == kDispatch || stamp.operation == kReceive;
      if (first) first_ends = std::max(first_ends, stamp.at_ns);
      if (!first && stamp.step == kTraceAwaited) {
        second_awaited = std::min(second_awaited, stamp.at_ns);
      }
    }
    EXPECT_LE(first_ends, second_awaited);
  }
}

TEST_P(Traced, TheLastFourExchangesAreKept) {
  const std::vector<Stamp> stamps = run(6);
  std::set<std::uint32_t> generations;
  for (const Stamp& stamp : stamps) {
    // Steps that a warp passed in an earlier exchange alone may be older.
    if (stamp.step == kTraceEnd) generations.insert(stamp.generation);
  }
  ASSERT_EQ(generations.size(), 4u);
  EXPECT_EQ(*generations.rbegin() - *generations.begin(), 3u);
}

TEST_P(Traced, ChromeTraceHasASliceForEachStep) {
  const std::vector<Stamp> stamps = run(2);
  const std::vector<Stamp> one = of_exchange(stamps, settled_generation(stamps));
  const auto trace = nlohmann::json::parse(to_chrome(one, generated_.bundle.manifest()));
  std::set<int> processes;
  std::size_t slices = 0;
  for (const auto& event : trace["traceEvents"]) {
    processes.insert(event["pid"].get<int>());
    if (event["ph"] != "X") continue;
    ++slices;
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_NE(event["name"], "");
  }
  EXPECT_EQ(processes, (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(slices, one.size());  // a step fewer than stamps, and the kernel's own slice
}

TEST_P(Traced, TracedKernelsPassVerification) {
  verify::VerifyOptions options;
  options.seeds = 1;
  options.emit = [](const plan::ExchangePlan& plan) {
    return verify::emit_as_planned(plan::traced(plan));
  };
  const Result<verify::VerifyReport> report =
      verify::verify(spec_text(GetParam()), "traced.yaml", options);
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  EXPECT_TRUE(report->failures.empty()) << to_string(report->failures);
  EXPECT_GT(report->exchanges, 0);
}

INSTANTIATE_TEST_SUITE_P(All, Traced, ::testing::Values("flag_in_data", "chunked", "bulk"));

TEST(TracedBundle, HasADigestOfItsOwnAndIsLargerOnlyInTheWorkspace) {
  const Result<spec::Spec> spec = spec::parse(spec_text("flag_in_data"), "traced.yaml");
  const Result<Generated> plain = generate(*spec, {.emit_only = true});
  const Generated traced = generate_traced("flag_in_data");
  EXPECT_NE(plain->plan.spec_digest, traced.plan.spec_digest);
  EXPECT_EQ(plain->plan.spec_digest.size(), traced.plan.spec_digest.size());
  EXPECT_EQ(plain->plan.attention.window, traced.plan.attention.window);
  EXPECT_EQ(plain->plan.window_bytes, traced.plan.window_bytes);
  ASSERT_EQ(plain->plan.ffn.workspace.size() + 1, traced.plan.ffn.workspace.size());
  for (const KernelSource& source : plain->sources) {
    EXPECT_EQ(source.text.find("race"), std::string::npos) << source.file_name;
  }
}

TEST(TracedBundle, AnUntracedOneIsRefusedByName) {
  const Result<spec::Spec> spec = spec::parse(spec_text("flag_in_data"), "plain.yaml");
  const Result<Generated> plain = generate(*spec, {.emit_only = true});
  Result<verify::Stage> stage = verify::make_stage({}, plain->bundle, {});
  ASSERT_TRUE(stage.ok());
  const auto records = stage->world->buffer(0).read_trace();
  ASSERT_FALSE(records.ok());
  EXPECT_EQ(records.diagnostics()[0].code, ErrorCode::kUnsupported);
  EXPECT_EQ(records.diagnostics()[0].message, "read_trace: the kernels of stamped record nothing");
}

}  // namespace
}  // namespace afdep::trace
