// afdep-bench: how long an exchange takes, every rank a stream of one GPU.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/bench_arms.h"
#include "cli/bench_input.h"
#include "cli/bench_options.h"
#include "cli/bench_resources.h"
#include "cli/bench_run.h"
#include "cli/bench_trace.h"
#include "cli/calibrate.h"
#include "cli/console.h"
#include "cli/run_tune.h"
#include "runtime/backend/backend.h"

namespace afdep::cli {
namespace {

struct Arguments {
  std::string input;
  std::vector<int> tokens;  // empty: every bucket
  std::string routing = "random";
  std::string trace;  // a file to write one exchange's steps to, instead of measuring
  bool arms = false;  // measure the spec with its improvements reverted, too
  std::string svg;    // a file for the arms' plot
  BenchOptions options;
  bool json = false;
};

struct Report {
  std::string name;
  std::string device;
  std::string arch;
  std::string layout;
  std::string routing;
  int exchanges_per_graph = 0;
  Calibration calibration;
  std::vector<Cell> cells;
  std::vector<BucketResources> held;
  int sm_count = 0;
};

Result<std::vector<int>> tokens_to_measure(const bundle::Manifest& manifest,
                                           const std::vector<int>& asked) {
  std::vector<int> tokens = asked;
  if (tokens.empty()) {
    for (const bundle::Bucket& bucket : manifest.buckets) tokens.push_back(bucket.tokens);
  }
  const int largest = manifest.buckets.back().tokens;
  for (const int count : tokens) {
    if (count <= largest) continue;
    return Failure(ErrorCode::kTokens,
                   fmt::format("--tokens {} exceeds the largest bucket of {}, {}", count,
                               manifest.name, largest),
                   "name smaller ones, or add a bucket to capacity.buckets");
  }
  return tokens;
}

Result<Report> bench(const Arguments& arguments) {
  const Result<BenchInput> input = open_input(arguments.input);
  if (!input.ok()) return input.failure();
  Backend& gpu = *input->gpu;
  const bundle::Manifest& manifest = input->bundle.manifest();
  const Result<std::vector<int>> tokens = tokens_to_measure(manifest, arguments.tokens);
  if (!tokens.ok()) return tokens.failure();
  Result<Calibration> calibration = calibrate(gpu);
  if (!calibration.ok()) return calibration.failure();
  const Result<std::unique_ptr<verify::World>> world =
      verify::World::create(gpu, input->bundle, {});
  if (!world.ok()) return world.failure();

  Report report{.name = manifest.name,
                .device = std::string(gpu.device_name()),
                .arch = std::string(gpu.arch()),
                .layout = fmt::format("{}A{}F", manifest.attention_ranks, manifest.ffn_ranks),
                .routing = arguments.routing,
                .exchanges_per_graph = arguments.options.exchanges_per_graph,
                .calibration = std::move(*calibration),
                .cells = {},
                .held = resources_of(manifest, gpu.arch(), gpu.sm_count()),
                .sm_count = gpu.sm_count()};
  for (const int count : *tokens) {
    Result<Cell> cell = measure(**world, count, report.calibration.rates, arguments.options);
    if (!cell.ok()) return cell.failure();
    report.cells.push_back(std::move(*cell));
  }
  AFDEP_RETURN_IF_FAILED((*world)->close_all());
  return report;
}

nlohmann::json to_json(const Times& times) {
  return {{"median_us", times.median},
          {"min_us", times.min},
          {"max_us", times.max},
          {"enqueue_bound", times.enqueue_bound}};
}

nlohmann::json to_json(const Report& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const Cell& cell : report.cells) {
    cells.push_back({{"tokens", cell.tokens},
                     {"bucket", cell.bucket},
                     {"protocol", cell.protocol},
                     {"programmatic", cell.programmatic},
                     {"many", to_json(cell.many)},
                     {"one", to_json(cell.one)},
                     {"enqueue",
                      {{"median_us", cell.enqueue.median},
                       {"min_us", cell.enqueue.min},
                       {"max_us", cell.enqueue.max}}},
                     {"floor_us", cell.floor.total_us()},
                     {"floor_launch_us", cell.floor.launch_us},
                     {"floor_hop_us", cell.floor.hop_us},
                     {"floor_bytes_us", cell.floor.bytes_us},
                     {"ratio", cell.many.median / cell.floor.total_us()}});
  }
  const plan::MachineRates& rates = report.calibration.rates;
  return {{"ok", true},
          {"name", report.name},
          {"device", report.device},
          {"arch", report.arch},
          {"layout", report.layout},
          {"routing", report.routing},
          {"exchanges_per_graph", report.exchanges_per_graph},
          {"calibrated", report.calibration.measured},
          {"graph_node_gap_us", rates.graph_node_gap_us},
          {"programmatic_gap_us", rates.programmatic_gap_us},
          {"flag_hop_us", rates.flag_hop_us},
          {"cells", std::move(cells)},
          {"held", nlohmann::json::parse(to_json_text(report.held))}};
}

std::string to_text(const Report& report) {
  const plan::MachineRates& rates = report.calibration.rates;
  std::string text = fmt::format(
      "{}, {}, {} routing, on {} ({}), every rank a stream\n"
      "kernel gap {:.2f} us ({:.2f} programmatic), flag hop {:.2f} us: {}\n"
      "us an exchange, {} a graph (median, min-max), then one a graph; host: us to enqueue an "
      "eager "
      "operation\n\n"
      "{:>7} {:>7}  {:<13} {:<6} {:>9} {:>19} {:>9} {:>9} {:>9} {:>6}\n",
      report.name, report.layout, report.routing, report.device, report.arch,
      rates.graph_node_gap_us, rates.programmatic_gap_us, rates.flag_hop_us,
      report.calibration.measured ? "measured in this run"
                                  : "an H200's, since " + report.calibration.why_not,
      report.exchanges_per_graph, "T", "bucket", "protocol", "launch", "median", "min-max", "one",
      "floor", "/ floor", "host");
  for (const Cell& cell : report.cells) {
    const double floor = cell.floor.total_us();
    text += fmt::format(
        "{:>7} {:>7}  {:<13} {:<6} {:>9.2f} {:>19} {:>9.2f} {:>9.2f} {:>9.2f} {:>6.2f}{}\n",
        cell.tokens, cell.bucket, cell.protocol, cell.programmatic ? "early" : "plain",
        cell.many.median, fmt::format("{:.2f}-{:.2f}", cell.many.min, cell.many.max),
        cell.one.median, floor, cell.many.median / floor, cell.enqueue.median,
        cell.many.enqueue_bound  ? "  host-bound"
        : cell.one.enqueue_bound ? "  one: host-bound"
                                 : "");
  }
  return text + "data checked bit for bit\n\n" + to_text(report.held, report.sm_count);
}

int run(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "tune") return run_tune_command(argc - 1, argv + 1);
  CLI::App app("Measures exchanges of a spec or a bundle on one GPU, every rank a stream.",
               "afdep-bench");
  app.set_version_flag("--version", "afdep-bench " AFDEP_VERSION);
  app.footer(
      "\nafdep-bench tune SPEC -o FILE measures alternatives: see afdep-bench tune --help.\n"
      "Exit codes: 0 ok, 1 spec refused or wrong data, 2 usage, 3 no GPU or toolchain, 70 "
      "internal.");
  Arguments arguments;
  app.add_option("INPUT", arguments.input, "A spec (\"-\": standard input) or a bundle's folder")
      ->required();
  app.add_option("--tokens", arguments.tokens, "Tokens a source (default: every bucket)")
      ->delimiter(',')
      ->check(CLI::Range(1, 65536))
      ->option_text("T[,T...]");
  add_bench_options(app, arguments.routing, arguments.options, "Of at least 100 exchanges each");
  auto* const arms = app.add_flag(
      "--arms", arguments.arms,
      "Measure the spec as it is, with each improvement reverted, and with all reverted");
  app.add_option("--svg", arguments.svg, "Plot the arms' latency over tokens")
      ->needs(arms)
      ->type_name("FILE");
  app.add_option("--trace", arguments.trace,
                 "Measure nothing: write when each warp passes each step of one exchange, of the "
                 "first of --tokens, as a Chrome trace (Perfetto opens it)")
      ->excludes(arms)
      ->type_name("FILE");
  app.add_flag("--json", arguments.json, "Print the result, or the errors, as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  arguments.options.routing = routing_named(arguments.routing);
  if (arguments.arms) {
    std::error_code unreadable;  // then it is no folder
    if (std::filesystem::is_directory(arguments.input, unreadable)) {
      print_error(fmt::format("--arms needs a spec, and {} is a bundle: it holds one arm alone\n",
                              arguments.input));
      return kExitUsage;
    }
    return run_arms({.spec = arguments.input,
                     .tokens = arguments.tokens,
                     .routing = arguments.routing,
                     .svg = arguments.svg,
                     .options = arguments.options,
                     .json = arguments.json});
  }
  if (!arguments.trace.empty()) {
    return run_trace({.input = arguments.input,
                      .file = arguments.trace,
                      .tokens = arguments.tokens.empty() ? 0 : arguments.tokens.front(),
                      .options = arguments.options,
                      .json = arguments.json});
  }
  const Result<Report> report = bench(arguments);
  if (!report.ok()) return report_failure(report.diagnostics(), arguments.json);
  print_out(arguments.json
                ? to_json(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
                      "\n"
                : to_text(*report));
  return kExitOk;
}

}  // namespace
}  // namespace afdep::cli

int main(int argc, char** argv) {
  return afdep::cli::run_guarded("afdep-bench", [&] { return afdep::cli::run(argc, argv); });
}
