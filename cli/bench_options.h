// The options that everything which times exchanges has.
#pragma once

#include <string>

#include "cli/bench_run.h"
#include "generator/verify/inputs.h"

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11's
class App;
}

namespace afdep::cli {

// --routing, --exchanges-per-graph, --repeats and --seed; repeats_help says what --repeats counts.
// Both outlive the parse. The routing goes into `routing` by name: see routing_named().
void add_bench_options(CLI::App& app, std::string& routing, BenchOptions& options,
                       const std::string& repeats_help);

// Precondition: a name that --routing takes.
verify::Routing routing_named(const std::string& name);

}  // namespace afdep::cli
