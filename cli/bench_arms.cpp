#include "cli/bench_arms.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/bench_floor.h"
#include "cli/bench_input.h"
#include "cli/console.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/spec/names.h"
#include "generator/spec/overrides.h"
#include "runtime/cuda/cuda_backend.h"

namespace afdep::cli {
namespace {

// What an arm reverts: a key of `ablation`, all of them, or none. protocol: forced for every
// bucket; empty: as the spec has it.
struct Arm {
  std::string name;
  std::vector<std::string> reverted;
  std::string protocol;
};

std::vector<Arm> arms() {
  std::vector<Arm> list{{"ours", {}, ""}};
  Arm all{"all reverted", {}, ""};
  for (const std::string_view name : spec::ablation_names()) {
    list.push_back({std::string(name), {std::string(name)}, ""});
    all.reverted.emplace_back(name);
  }
  list.push_back(all);
  // Rows move as in the library that the baseline stands for: whole, behind flags.
  list.push_back({"baseline", std::move(all.reverted), "bulk"});
  return list;
}

Result<spec::Spec> spec_of(const SpecText& text, const Arm& arm) {
  std::vector<spec::Override> overrides;
  for (const std::string_view name : spec::ablation_names()) {
    const bool reverted = std::ranges::find(arm.reverted, name) != arm.reverted.end();
    overrides.push_back({fmt::format("ablation.{}", name), reverted ? "true" : "false"});
  }
  if (!arm.protocol.empty()) overrides.push_back({"kernel.protocol", arm.protocol});
  return spec::with_overrides(text.text, text.file, overrides);
}

struct Prepared {
  std::unique_ptr<verify::World> world;
};

// on_checked: called when an arm's data has been found right.
Result<ArmsCell> measure_cell(std::vector<Prepared>& worlds, int tokens,
                              const plan::MachineRates& rates, const BenchOptions& options,
                              const std::function<void()>& on_checked) {
  std::vector<Turns> turns;
  for (const Prepared& prepared : worlds) {
    Result<Turns> made = Turns::create(*prepared.world, tokens, options);
    if (!made.ok()) return made.failure();
    turns.push_back(std::move(*made));
    on_checked();
  }
  for (int repeat = -1; repeat < options.repeats; ++repeat) {
    for (Turns& each : turns) AFDEP_RETURN_IF_FAILED(each.take(/*warm_up=*/repeat < 0));
  }
  const verify::World& ours = *worlds.front().world;
  const verify::ExchangeCase& exchange = turns.front().exchange();
  const bundle::Bucket& bucket = *ours.manifest().find_bucket(exchange.bucket);
  const bool early = worlds.front().world->buffer(0).programmatic(bucket.tokens);
  ArmsCell cell{.tokens = tokens,
                .bucket = bucket.tokens,
                .protocol = std::string(bundle::to_string(bucket.protocol)),
                .floor = loopback_floor(ours.manifest(), exchange, rates, early),
                .times = {}};
  for (Turns& each : turns) {
    AFDEP_RETURN_IF_FAILED(each.check());
    cell.times.push_back(each.times());
  }
  return cell;
}

Result<std::vector<int>> tokens_to_measure(const bundle::Manifest& manifest,
                                           std::vector<int> asked) {
  if (asked.empty()) {
    for (const bundle::Bucket& bucket : manifest.buckets) asked.push_back(bucket.tokens);
  }
  const int largest = manifest.buckets.back().tokens;
  for (const int count : asked) {
    if (count <= largest) continue;
    return Failure(ErrorCode::kTokens,
                   fmt::format("--tokens {} exceeds the largest bucket of {}, {}", count,
                               manifest.name, largest),
                   "name smaller ones, or add a bucket to capacity.buckets");
  }
  return asked;
}

nlohmann::json to_json(const ArmsReport& report, const ArmsCell& cell) {
  const double floor = cell.floor.total_us();
  nlohmann::json times = nlohmann::json::array();
  for (std::size_t i = 0; i < cell.times.size(); ++i) {
    const Times& arm = cell.times[i];
    times.push_back({{"arm", report.arms[i]},
                     {"median_us", arm.median},
                     {"min_us", arm.min},
                     {"max_us", arm.max},
                     {"enqueue_bound", arm.enqueue_bound},
                     {"ratio", arm.median / floor}});
  }
  return {{"tokens", cell.tokens},
          {"bucket", cell.bucket},
          {"protocol", cell.protocol},
          {"floor_us", floor},
          {"floor_launch_us", cell.floor.launch_us},
          {"floor_hop_us", cell.floor.hop_us},
          {"floor_bytes_us", cell.floor.bytes_us},
          {"arms", std::move(times)}};
}

}  // namespace

Result<ArmsReport> measure_arms(const ArmsArguments& arguments) {
  // A spec that cannot be read is worth saying even where there is no GPU.
  const Result<SpecText> text = read_spec(arguments.spec);
  if (!text.ok()) return text.failure();
  std::vector<spec::Spec> specs;
  for (const Arm& arm : arms()) {
    Result<spec::Spec> spec = spec_of(*text, arm);
    if (!spec.ok()) return spec.failure();
    specs.push_back(std::move(*spec));
  }
  const Result<std::unique_ptr<Backend>> gpu = make_cuda_backend();
  if (!gpu.ok()) return gpu.failure();
  const std::optional<spec::Arch> arch = spec::from_name<spec::Arch>((*gpu)->arch());
  if (!arch) {
    return Failure(ErrorCode::kArch, fmt::format("this GPU is {}", (*gpu)->arch()),
                   "kernels are compiled for " + spec::join(spec::name_texts<spec::Arch>()));
  }

  ArmsReport report;
  std::vector<Prepared> worlds;
  Progress compiling("compiling arms");
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i].arch.value = {*arch};
    compiling.show(static_cast<int>(i), static_cast<int>(specs.size()));
    const Result<Generated> generated = generate(specs[i], {});
    if (!generated.ok()) return generated.failure();
    Result<std::unique_ptr<verify::World>> world =
        verify::World::create(**gpu, generated->bundle, {});
    if (!world.ok()) return world.failure();
    worlds.push_back({std::move(*world)});
  }
  const bundle::Manifest& manifest = worlds.front().world->manifest();
  const Result<std::vector<int>> tokens = tokens_to_measure(manifest, arguments.tokens);
  if (!tokens.ok()) return tokens.failure();
  Result<Calibration> calibration = calibrate(**gpu);
  if (!calibration.ok()) return calibration.failure();
  report.name = manifest.name;
  report.layout = fmt::format("{}A{}F", manifest.attention_ranks, manifest.ffn_ranks);
  report.routing = arguments.routing;
  report.device = (*gpu)->device_name();
  report.arch = (*gpu)->arch();
  report.exchanges_per_graph = arguments.options.exchanges_per_graph;
  report.repeats = arguments.options.repeats;
  report.calibration = std::move(*calibration);
  for (const Arm& arm : arms()) report.arms.push_back(arm.name);
  Progress measuring("measuring arms");
  int done = 0;
  const int all = static_cast<int>(tokens->size() * worlds.size());
  for (const int count : *tokens) {
    Result<ArmsCell> cell = measure_cell(worlds, count, report.calibration.rates, arguments.options,
                                         [&] { measuring.show(++done, all); });
    if (!cell.ok()) return cell.failure();
    report.cells.push_back(std::move(*cell));
  }
  for (const Prepared& prepared : worlds) AFDEP_RETURN_IF_FAILED(prepared.world->close_all());
  return report;
}

std::string to_text(const ArmsReport& report) {
  const plan::MachineRates& rates = report.calibration.rates;
  std::string text = fmt::format(
      "{}, {}, {} routing, on {} ({}), every rank a stream\n"
      "kernel gap {:.2f} us ({:.2f} programmatic), flag hop {:.2f} us: {}\n"
      "us an exchange, {} a graph; {} repeats, in which the arms take turns\n",
      report.name, report.layout, report.routing, report.device, report.arch,
      rates.graph_node_gap_us, rates.programmatic_gap_us, rates.flag_hop_us,
      report.calibration.measured ? "measured in this run"
                                  : "an H200's, since " + report.calibration.why_not,
      report.exchanges_per_graph, report.repeats);
  for (const ArmsCell& cell : report.cells) {
    const double floor = cell.floor.total_us();
    text += fmt::format(
        "\nT = {}, bucket {}, {}: floor {:.2f}\n  {:<20} {:>9} {:>19} {:>9} {:>9}\n", cell.tokens,
        cell.bucket, cell.protocol, floor, "reverted", "median", "min-max", "/ floor", "/ ours");
    for (std::size_t i = 0; i < cell.times.size(); ++i) {
      const Times& arm = cell.times[i];
      text += fmt::format("  {:<20} {:>9.2f} {:>19} {:>9.2f} {:>9.2f}{}\n",
                          i == 0 ? "nothing (ours)" : report.arms[i], arm.median,
                          fmt::format("{:.2f}-{:.2f}", arm.min, arm.max), arm.median / floor,
                          arm.median / cell.times.front().median,
                          arm.enqueue_bound ? "  host-bound" : "");
    }
  }
  return text + "\ndata checked bit for bit\n";
}

std::string to_json_text(const ArmsReport& report) {
  nlohmann::json cells = nlohmann::json::array();
  for (const ArmsCell& cell : report.cells) cells.push_back(to_json(report, cell));
  const plan::MachineRates& rates = report.calibration.rates;
  const nlohmann::json json = {{"ok", true},
                               {"name", report.name},
                               {"device", report.device},
                               {"arch", report.arch},
                               {"layout", report.layout},
                               {"routing", report.routing},
                               {"exchanges_per_graph", report.exchanges_per_graph},
                               {"repeats", report.repeats},
                               {"calibrated", report.calibration.measured},
                               {"graph_node_gap_us", rates.graph_node_gap_us},
                               {"programmatic_gap_us", rates.programmatic_gap_us},
                               {"flag_hop_us", rates.flag_hop_us},
                               {"cells", std::move(cells)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

int run_arms(const ArmsArguments& arguments) {
  const Result<ArmsReport> report = measure_arms(arguments);
  if (!report.ok()) return report_failure(report.diagnostics(), arguments.json);
  print_out(arguments.json ? to_json_text(*report) + "\n" : to_text(*report));
  if (!arguments.svg.empty()) {
    const Result<void> written = write_file(arguments.svg, to_svg(*report));
    if (!written.ok()) return report_failure(written.diagnostics(), false);
  }
  return kExitOk;
}

}  // namespace afdep::cli
