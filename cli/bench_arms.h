// afdep-bench --arms: what each improvement is worth, all arms taking turns in one run.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_run.h"
#include "cli/calibrate.h"
#include "generator/plan/floor.h"
#include "runtime/support/result.h"

namespace afdep::cli {

// The times of one token count, arm by arm.
struct ArmsCell {
  int tokens = 0;  // of each source
  int bucket = 0;
  std::string protocol;      // of the spec as it is; arms keep it, but for "baseline"
  plan::Floor floor;         // of the spec as it is: the ratios of all arms refer to it
  std::vector<Times> times;  // in the order of ArmsReport::arms
};

struct ArmsReport {
  std::string name;
  std::string layout;
  std::string routing;
  std::string device;
  std::string arch;
  int exchanges_per_graph = 0;
  int repeats = 0;
  Calibration calibration;
  std::vector<std::string> arms;  // "ours", each ablation, "all reverted", "baseline"
  std::vector<ArmsCell> cells;
};

struct ArmsArguments {
  std::string spec;         // a path, or "-"
  std::vector<int> tokens;  // empty: every bucket
  std::string routing;      // as options.routing is called
  std::string svg;          // a file for the plot; empty: none
  BenchOptions options;
  bool json = false;
};

// Compiles the spec for this machine's GPU once an arm and measures. Arms take turns repeat by
// repeat, so that what drifts drifts for all.
Result<ArmsReport> measure_arms(const ArmsArguments& arguments);

std::string to_text(const ArmsReport& report);
// A JSON object's text.
std::string to_json_text(const ArmsReport& report);
// Latency over tokens, both logarithmic: floor and arms. Self-contained; follows the viewer's light
// or dark scheme.
std::string to_svg(const ArmsReport& report);

// The whole command; returns the exit code.
int run_arms(const ArmsArguments& arguments);

}  // namespace afdep::cli
