// afdep-bench tune: measures alternatives and writes the best as a spec.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_run.h"

namespace afdep::cli {

struct TuneArguments {
  std::string spec;      // a path, or "-"
  std::string out;       // the tuned spec; the state is kept in `out`.state until it is written
  std::vector<int> sms;  // of a rank, to try for each role; empty: the tuner's own
  std::string routing = "random";
  BenchOptions options;
  bool fresh = false;  // forget an earlier state
  bool json = false;
};

inline constexpr int kExitInterrupted = 130;  // as a shell says it of SIGINT

// Returns the exit code.
int run_tune(const TuneArguments& arguments);

// The same from the command line: argv[0] is the word "tune".
int run_tune_command(int argc, char** argv);

}  // namespace afdep::cli
