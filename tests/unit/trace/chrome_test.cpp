#include "generator/trace/chrome.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace afdep::trace {
namespace {

Stamp stamp(int rank, bundle::Operation operation, int block, int warp, TraceStep step, double at) {
  Stamp made;
  made.rank = rank;
  made.operation = operation;
  made.block = block;
  made.warp = warp;
  made.step = step;
  made.generation = 9;
  made.sm = 40;
  made.at_ns = at;
  return made;
}

bundle::Manifest manifest() {
  bundle::Manifest made;
  made.name = "two";
  made.spec_digest = "abc";
  made.attention_ranks = 1;
  made.ffn_ranks = 1;
  return made;
}

std::vector<Stamp> stamps() {
  using enum bundle::Operation;
  return {stamp(0, kReceive, 0, 0, kTraceStart, 5000),
          stamp(0, kReceive, 0, 0, kTraceEnd, 9500),
          stamp(1, kDispatch, 2, 3, kTraceStart, 4000),
          stamp(1, kDispatch, 2, 3, kTraceAwaited, 4250),
          stamp(1, kDispatch, 2, 3, kTraceRowsSent, 5000.4),
          stamp(1, kCollect, 2, 3, kTraceStart, 6000),
          stamp(1, kCollect, 2, 3, kTraceEnd, 8000)};
}

TEST(Chrome, RanksAreProcessesAndWarpsThreads) {
  const auto trace = nlohmann::json::parse(to_chrome(stamps(), manifest()));
  std::map<std::pair<std::string, std::pair<int, int>>, std::string> names;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "M") continue;
    names[{event["name"], {event["pid"], event["tid"]}}] = event["args"]["name"];
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ((names[{"process_name", {0, 0}}]), "rank 0: ffn 0");
  EXPECT_EQ((names[{"process_name", {1, 0}}]), "rank 1: attention 0");
  EXPECT_EQ((names[{"thread_name", {1, 2 * 32 + 3}}]), "CTA 2 warp 3");
  EXPECT_EQ(trace["otherData"]["generation"], 9);
  EXPECT_EQ(trace["otherData"]["name"], "two");
}

TEST(Chrome, StepsAreSlicesInTheirKernel) {
  const auto trace = nlohmann::json::parse(to_chrome(stamps(), manifest()));
  std::vector<nlohmann::json> dispatch;
  int slices = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++slices;
    if (event["pid"] == 1 && (event["name"] == "dispatch" || event["cat"] == "dispatch")) {
      dispatch.push_back(event);
    }
  }
  EXPECT_EQ(slices, 2 + 3 + 2);
  ASSERT_EQ(dispatch.size(), 3u);
  EXPECT_EQ(dispatch[0]["name"], "dispatch");
  EXPECT_EQ(dispatch[0]["cat"], "kernel");
  EXPECT_DOUBLE_EQ(dispatch[0]["ts"], 0);  // the exchange's first stamp
  EXPECT_DOUBLE_EQ(dispatch[0]["dur"], 1.0);
  EXPECT_EQ(dispatch[1]["name"], "await previous kernel");
  EXPECT_DOUBLE_EQ(dispatch[1]["dur"], 0.25);
  EXPECT_EQ(dispatch[2]["name"], "send rows");
  EXPECT_DOUBLE_EQ(dispatch[2]["ts"], 0.25);
  EXPECT_EQ(dispatch[2]["args"]["sm"], 40);
}

TEST(Chrome, SummaryHoldsFirstMedianAndLast) {
  using enum bundle::Operation;
  const std::vector<StepTimes> steps = summarize(
      {stamp(0, kReceive, 0, 0, kTraceStart, 1000), stamp(0, kReceive, 0, 1, kTraceStart, 3000),
       stamp(0, kReceive, 1, 0, kTraceStart, 2000), stamp(0, kReceive, 0, 0, kTraceEnd, 7000)});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, kTraceStart);
  EXPECT_EQ(steps[0].warps, 3);
  EXPECT_DOUBLE_EQ(steps[0].first_us, 0);
  EXPECT_DOUBLE_EQ(steps[0].median_us, 1);
  EXPECT_DOUBLE_EQ(steps[0].last_us, 2);
  EXPECT_DOUBLE_EQ(steps[1].median_us, 6);
}

TEST(Chrome, SettledGenerationHasOneBehindIt) {
  std::vector<Stamp> all(3);
  all[0].generation = 7;
  all[1].generation = 9;
  all[2].generation = 8;
  EXPECT_EQ(settled_generation(all), 8u);
  all.resize(1);
  EXPECT_EQ(settled_generation(all), 7u);
}

}  // namespace
}  // namespace afdep::trace
