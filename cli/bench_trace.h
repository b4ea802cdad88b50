// afdep-bench --trace: one exchange of a traced bundle, step by step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/bench_run.h"
#include "generator/trace/chrome.h"
#include "generator/verify/world.h"
#include "runtime/support/result.h"

namespace afdep::cli {

struct TracedExchange {
  int tokens = 0;  // of each source
  int bucket = 0;
  std::string protocol;
  bool programmatic = false;
  std::uint32_t generation = 0;
  double clock_tick_ns = 0;  // of the clock that all SMs share
  std::vector<trace::StepTimes> steps;
  std::string chrome;  // the file's text
};

// Replays graphs of exchanges of `tokens` a source, checks their data bit for bit (E704) and takes
// one that has others before and behind it. The world's bundle must be traced (E404).
Result<TracedExchange> record_exchange(verify::World& world, int tokens,
                                       const BenchOptions& options);

std::string to_text(const TracedExchange& traced);
// A JSON object's text.
std::string to_json_text(const TracedExchange& traced);

struct TraceArguments {
  std::string input;  // a spec or a traced bundle's folder
  std::string file;   // to write
  int tokens = 0;     // of each source; 0: the smallest bucket
  BenchOptions options;
  bool json = false;
};

// The whole command on this machine's GPU; returns the exit code.
int run_trace(const TraceArguments& arguments);

}  // namespace afdep::cli
