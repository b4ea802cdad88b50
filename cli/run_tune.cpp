#include "cli/run_tune.h"
#include "cli/bench_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/console.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/spec_input.h"
#include "cli/tune_timer.h"
#include "generator/spec/digest.h"
#include "generator/spec/names.h"
#include "generator/tune/run.h"
#include "generator/tune/select.h"
#include "generator/tune/tuned_spec.h"
#include "runtime/cuda/cuda_backend.h"

namespace afdep::cli {
namespace {

std::atomic<bool> stop_asked = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void ask_to_stop(int /*signal*/) { stop_asked = true; }

// The first Ctrl-C asks the tuner to stop after the measurement under way; the second one ends the
// process at once.
class Interruption {
 public:
  Interruption() {
    struct sigaction action{};
    action.sa_handler = ask_to_stop;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~Interruption() { sigaction(SIGINT, &before_, nullptr); }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

 private:
  struct sigaction before_{};
};

// "580.159", as the kernel module says it.
std::string driver_version() {
  std::ifstream in("/proc/driver/nvidia/version");
  for (std::string word; in >> word;) {
    const bool number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (number && word.find('.') != std::string::npos) return word;
  }
  return "unknown";
}

struct Outcome {
  tune::Ending ending = tune::Ending::kInterrupted;
  tune::State state;
  std::vector<tune::BucketArms> arms;
  std::optional<tune::Choice> choice;  // if complete
};

std::string state_file(const TuneArguments& arguments) { return arguments.out + ".state"; }

Result<tune::State> load_state(const TuneArguments& arguments, const tune::Identity& identity) {
  const std::string file = state_file(arguments);
  std::ifstream in(file, std::ios::binary);
  if (arguments.fresh || !in) {
    return tune::State{.identity = identity, .samples = {}, .refused = {}};
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return tune::read_state(text, file, identity);
}

Result<Outcome> tune_spec(const TuneArguments& arguments) {
  const Result<spec::Spec> spec = load_spec(arguments.spec);
  if (!spec.ok()) return spec.failure();
  const Result<std::unique_ptr<Backend>> backend = make_cuda_backend();
  if (!backend.ok()) return backend.failure();
  tune::Space space;
  if (!arguments.sms.empty()) space.sms = arguments.sms;
  space.sm_count = (*backend)->sm_count();
  Result<std::vector<tune::BucketArms>> arms = tune::arms_of(*spec, space);
  if (!arms.ok()) return arms.failure();

  const BenchOptions& options = arguments.options;
  const tune::Identity identity{
      .spec_digest = spec::digest(*spec),
      .generator = AFDEP_VERSION,
      .gpu = std::string((*backend)->device_name()),
      .driver = driver_version(),
      .method = fmt::format("{} routing, seed {}, {} exchanges a graph", arguments.routing,
                            options.seed, options.exchanges_per_graph)};
  Result<tune::State> state = load_state(arguments, identity);
  if (!state.ok()) return state.failure();
  // An output that cannot be written is better known before minutes of measuring.
  AFDEP_RETURN_IF_FAILED(write_file(state_file(arguments), tune::to_text(*state)));

  GpuTimer timer(**backend, options);
  Progress progress("tuning");
  const bool plain = isatty(STDERR_FILENO) != 1;
  tune::RunOptions run;
  run.repeats = options.repeats;
  run.interrupted = [] { return stop_asked.load(); };
  run.on_progress = [&](int done, int total) { progress.show(done, total); };
  run.on_bucket = [&](int bucket) {
    if (plain) print_error(fmt::format("bucket {}: measured\n", bucket));
  };
  run.keep = [&](const tune::State& now) {
    return write_file(state_file(arguments), tune::to_text(now));
  };
  const Interruption interruption;
  const Result<tune::Ending> ended = tune::run(*spec, *arms, timer, *state, run);
  if (!ended.ok()) return ended.failure();
  Outcome outcome{.ending = *ended,
                  .state = std::move(*state),
                  .arms = std::move(*arms),
                  .choice = std::nullopt};
  if (*ended == tune::Ending::kInterrupted) return outcome;

  Result<tune::Choice> choice = tune::choose(*spec, outcome.arms, outcome.state);
  if (!choice.ok()) return choice.failure();
  AFDEP_RETURN_IF_FAILED(write_file(arguments.out, tune::tuned_text(*spec, *choice, identity)));
  std::error_code gone;  // a state that stays is only read again
  std::filesystem::remove(state_file(arguments), gone);
  outcome.choice = std::move(*choice);
  return outcome;
}

nlohmann::json to_json(const tune::Arm& arm, const tune::State& state) {
  nlohmann::json variants = nlohmann::json::array();
  for (const tune::Variant& variant : arm.variants) {
    variants.push_back({{"protocol", spec::to_name(variant.protocol)},
                        {"attention_sms", variant.sms.attention},
                        {"ffn_sms", variant.sms.ffn}});
  }
  nlohmann::json json{{"variants", std::move(variants)}};
  if (const auto refused = state.refused.find(arm.name()); refused != state.refused.end()) {
    json["refused"] = refused->second;
  }
  if (const auto found = state.samples.find(arm.name()); found != state.samples.end()) {
    json["median_us"] = tune::median_of(found->second);
    json["samples_us"] = found->second;
  }
  return json;
}

std::string to_json_text(const TuneArguments& arguments, const Outcome& outcome) {
  nlohmann::json measured = nlohmann::json::array();
  for (const tune::BucketArms& bucket : outcome.arms) {
    nlohmann::json arms = nlohmann::json::array();
    for (const tune::Arm& arm : bucket.arms) arms.push_back(to_json(arm, outcome.state));
    measured.push_back({{"bucket", bucket.bucket}, {"arms", std::move(arms)}});
  }
  nlohmann::json json{{"ok", outcome.choice.has_value()},
                      {"interrupted", !outcome.choice.has_value()},
                      {"gpu", outcome.state.identity.gpu},
                      {"driver", outcome.state.identity.driver},
                      {"measured", std::move(measured)}};
  if (outcome.choice) {
    nlohmann::json buckets = nlohmann::json::array();
    for (const tune::BucketChoice& bucket : outcome.choice->buckets) {
      buckets.push_back({{"bucket", bucket.bucket},
                         {"protocol", spec::to_name(bucket.protocol)},
                         {"us", bucket.us}});
      if (bucket.untuned) buckets.back()["untuned_us"] = bucket.untuned_us;
    }
    json["spec"] = arguments.out;
    json["attention_sms"] = outcome.choice->sms.attention;
    json["ffn_sms"] = outcome.choice->sms.ffn;
    json["buckets"] = std::move(buckets);
  } else {
    json["errors"] = nlohmann::json::array();
    json["state"] = state_file(arguments);
  }
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string to_text(const TuneArguments& arguments, const Outcome& outcome) {
  std::string text;
  for (const tune::BucketArms& bucket : outcome.arms) {
    text += fmt::format("bucket {}\n", bucket.bucket);
    for (const tune::Arm& arm : bucket.arms) {
      const auto found = outcome.state.samples.find(arm.name());
      if (found == outcome.state.samples.end()) {
        const auto refused = outcome.state.refused.find(arm.name());
        text += fmt::format("  {:<28} {}\n", arm.name(),
                            refused == outcome.state.refused.end() ? "" : refused->second);
        continue;
      }
      text += fmt::format("  {:<28} {:>9.2f} us", arm.name(), tune::median_of(found->second));
      if (arm.variants.size() > 1) text += fmt::format("  = {} more", arm.variants.size() - 1);
      text += "\n";
    }
  }
  const tune::Choice& choice = *outcome.choice;
  text +=
      fmt::format("\nnum_sms {{attention: {}, ffn: {}}}\n", choice.sms.attention, choice.sms.ffn);
  for (const tune::BucketChoice& bucket : choice.buckets) {
    text += fmt::format("  bucket {:<6} {:<13} {:>9.2f} us", bucket.bucket,
                        spec::to_name(bucket.protocol), bucket.us);
    if (bucket.untuned) text += fmt::format(", {:.2f} before", bucket.untuned_us);
    text += "\n";
  }
  return text + fmt::format("{}\n", arguments.out);
}

}  // namespace

int run_tune(const TuneArguments& arguments) {
  const Result<Outcome> outcome = tune_spec(arguments);
  if (!outcome.ok()) return report_failure(outcome.diagnostics(), arguments.json);
  if (!outcome->choice) {
    std::size_t measured = 0;
    for (const auto& [arm, samples] : outcome->state.samples) measured += samples.size();
    print_error(fmt::format(
        "interrupted: {} measurements are kept in {}; the same command goes on from there\n",
        measured, state_file(arguments)));
    if (arguments.json) print_out(to_json_text(arguments, *outcome));
    return kExitInterrupted;
  }
  print_out(arguments.json ? to_json_text(arguments, *outcome) : to_text(arguments, *outcome));
  return kExitOk;
}

int run_tune_command(int argc, char** argv) {
  CLI::App app(
      "Measures protocols and numbers of SMs on one GPU, every rank a stream, and writes the best "
      "as a spec. What the spec says itself (kernel.num_sms, kernel.protocol) stays.",
      "afdep-bench tune");
  app.footer(
      "\nCtrl-C keeps what was measured in FILE.state; the same command goes on from there.\n"
      "Exit codes: 0 ok, 1 spec refused or wrong data, 2 usage, 3 no GPU or toolchain, 70 "
      "internal, "
      "130 interrupted.");
  TuneArguments arguments;
  app.add_option("SPEC", arguments.spec, "A spec; \"-\" reads it from standard input")->required();
  app.add_option("-o,--output", arguments.out, "The tuned spec")->required()->type_name("FILE");
  app.add_option("--sms", arguments.sms,
                 "SMs of a rank to try for each role (default: 16,24,32,48)")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->option_text("N[,N...]");
  add_bench_options(app, arguments.routing, arguments.options, "Of each alternative, taking turns");
  app.add_flag("--fresh", arguments.fresh, "Measure everything, whatever an earlier run has kept");
  app.add_flag("--json", arguments.json, "Print every measurement, or the errors, as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  std::ranges::sort(arguments.sms);
  arguments.sms.erase(std::ranges::unique(arguments.sms).begin(), arguments.sms.end());
  arguments.options.routing = routing_named(arguments.routing);
  return run_tune(arguments);
}

}  // namespace afdep::cli
