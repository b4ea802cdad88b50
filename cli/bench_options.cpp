#include "cli/bench_options.h"

#include <CLI/CLI.hpp>
#include <map>

namespace afdep::cli {
namespace {

const std::map<std::string, verify::Routing>& routings() {
  static const std::map<std::string, verify::Routing> kRoutings{
      {"random", verify::Routing::kRandom},
      {"skewed", verify::Routing::kSkewed},
      {"one-hot", verify::Routing::kOneWorker}};
  return kRoutings;
}

}  // namespace

void add_bench_options(CLI::App& app, std::string& routing, BenchOptions& options,
                       const std::string& repeats_help) {
  app.add_option("--routing", routing,
                 "random, skewed (experts by Zipf's law), or one-hot (all to one worker)")
      ->check(CLI::IsMember({"random", "skewed", "one-hot"}))
      ->type_name("KIND");
  app.add_option("--exchanges-per-graph", options.exchanges_per_graph)
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--repeats", options.repeats, repeats_help)
      ->check(CLI::Range(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of routes and payload")
      ->type_name("S")
      ->capture_default_str();
}

verify::Routing routing_named(const std::string& name) { return routings().at(name); }

}  // namespace afdep::cli
