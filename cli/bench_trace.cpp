#include "cli/bench_trace.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/bench_input.h"
#include "cli/console.h"
#include "cli/output_file.h"
#include "runtime/backend/backend.h"

namespace afdep::cli {
namespace {

using verify::ExchangeCase;
using verify::Slot;
using verify::World;

constexpr int kReplays = 3;  // clocks and caches settle

Result<void> replay_and_check(World& world, const Slot& slot, const ExchangeCase& exchange,
                              const std::vector<Graph>& graphs) {
  for (int i = 0; i < kReplays; ++i) {
    for (int rank = 0; rank < world.ranks(); ++rank) {
      AFDEP_RETURN_IF_FAILED(
          world.backend().replay(graphs[static_cast<std::size_t>(rank)], world.stream(rank)));
    }
  }
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  AFDEP_RETURN_IF_FAILED(world.check_all());
  const Result<std::vector<std::string>> differences = world.compare(slot, exchange);
  if (!differences.ok()) return differences.failure();
  if (differences->empty()) return {};
  return Failure(ErrorCode::kVerification,
                 fmt::format("bucket {}: {}", exchange.bucket, differences->front()),
                 "no trace is written of wrong data");
}

Result<TracedExchange> trace_input(const TraceArguments& arguments) {
  const Result<BenchInput> input = open_input(arguments.input, /*trace=*/true);
  if (!input.ok()) return input.failure();
  Backend& gpu = *input->gpu;
  const bundle::Manifest& manifest = input->bundle.manifest();
  const int tokens = arguments.tokens == 0 ? manifest.buckets.front().tokens : arguments.tokens;
  if (tokens > manifest.buckets.back().tokens) {
    return Failure(ErrorCode::kTokens,
                   fmt::format("--tokens {} exceeds the largest bucket of {}, {}", tokens,
                               manifest.name, manifest.buckets.back().tokens),
                   "name a smaller one, or add a bucket to capacity.buckets");
  }
  const Result<std::unique_ptr<World>> world = World::create(gpu, input->bundle, {});
  if (!world.ok()) return world.failure();
  Result<TracedExchange> traced = record_exchange(**world, tokens, arguments.options);
  if (!traced.ok()) return traced.failure();
  AFDEP_RETURN_IF_FAILED((*world)->close_all());
  AFDEP_RETURN_IF_FAILED(write_file(arguments.file, traced->chrome));
  return traced;
}

}  // namespace

Result<TracedExchange> record_exchange(World& world, int tokens, const BenchOptions& options) {
  const bundle::Bucket* bucket = nullptr;
  for (const bundle::Bucket& each : world.manifest().buckets) {
    if (bucket == nullptr && each.tokens >= tokens) bucket = &each;
  }
  AFDEP_CHECK(bucket != nullptr, "the caller checks the capacity");
  const Result<Slot*> slot = world.add_slot(bucket->tokens);
  if (!slot.ok()) return slot.failure();
  verify::Random random(options.seed);
  const std::vector<int> counts(static_cast<std::size_t>(world.shape().sources), tokens);
  const ExchangeCase exchange =
      verify::make_case(world.shape(), bucket->tokens, world.receive_rows(bucket->tokens), counts,
                        options.routing, random);
  AFDEP_RETURN_IF_FAILED(world.load(**slot, exchange));
  const Result<std::vector<Graph>> graphs = world.capture(**slot, options.exchanges_per_graph);
  if (!graphs.ok()) return graphs.failure();
  AFDEP_RETURN_IF_FAILED(world.backend().synchronize_all());
  const Result<void> replayed = replay_and_check(world, **slot, exchange, *graphs);
  for (const Graph graph : *graphs) world.backend().destroy_graph(graph);
  AFDEP_RETURN_IF_FAILED(replayed);

  Result<std::vector<trace::Stamp>> stamps = trace::read_stamps(world, **slot);
  if (!stamps.ok()) return stamps.failure();
  TracedExchange traced{.tokens = tokens,
                        .bucket = bucket->tokens,
                        .protocol = std::string(bundle::to_string(bucket->protocol)),
                        .programmatic = world.buffer(0).programmatic(bucket->tokens),
                        .generation = trace::settled_generation(*stamps),
                        .clock_tick_ns = trace::place_in_time(*stamps),
                        .steps = {},
                        .chrome = {}};
  const std::vector<trace::Stamp> one = trace::of_exchange(*stamps, traced.generation);
  traced.steps = trace::summarize(one);
  traced.chrome = trace::to_chrome(one, world.manifest());
  world.free_slot(*slot);
  return traced;
}

std::string to_text(const TracedExchange& traced) {
  std::string text = fmt::format(
      "one exchange of {} tokens a source, bucket {}, {}, launched {}; generation {}\n"
      "us from its first instruction; all ranks' warps; shared clock ticks every {:.0f} ns\n\n"
      "{:<13} {:<20} {:>6} {:>9} {:>9} {:>9}\n",
      traced.tokens, traced.bucket, traced.protocol, traced.programmatic ? "early" : "plainly",
      traced.generation, traced.clock_tick_ns, "kernel", "passed", "warps", "first", "median",
      "last");
  for (const trace::StepTimes& step : traced.steps) {
    text += fmt::format("{:<13} {:<20} {:>6} {:>9.2f} {:>9.2f} {:>9.2f}\n",
                        bundle::to_string(step.operation),
                        step.step == kTraceStart ? "start" : trace::name_of(step.step), step.warps,
                        step.first_us, step.median_us, step.last_us);
  }
  return text;
}

std::string to_json_text(const TracedExchange& traced) {
  nlohmann::json steps = nlohmann::json::array();
  for (const trace::StepTimes& step : traced.steps) {
    steps.push_back(
        {{"kernel", bundle::to_string(step.operation)},
         {"step", step.step == kTraceStart ? std::string_view("start") : trace::name_of(step.step)},
         {"warps", step.warps},
         {"first_us", step.first_us},
         {"median_us", step.median_us},
         {"last_us", step.last_us}});
  }
  const nlohmann::json report{{"ok", true},
                              {"tokens", traced.tokens},
                              {"bucket", traced.bucket},
                              {"protocol", traced.protocol},
                              {"programmatic", traced.programmatic},
                              {"generation", traced.generation},
                              {"clock_tick_ns", traced.clock_tick_ns},
                              {"steps", std::move(steps)}};
  return report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

int run_trace(const TraceArguments& arguments) {
  const Result<TracedExchange> traced = trace_input(arguments);
  if (!traced.ok()) return report_failure(traced.diagnostics(), arguments.json);
  print_out(arguments.json ? to_json_text(*traced)
                           : to_text(*traced) + fmt::format("\n{}\n", arguments.file));
  return kExitOk;
}

}  // namespace afdep::cli
