// afdep-gen verify: every rank's kernels on the CPU emulator against the scalar model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "cli/progress.h"
#include "cli/spec_input.h"
#include "generator/verify/verify.h"

namespace afdep::cli {
namespace {

Result<verify::VerifyReport> verify_spec(const VerifyArguments& arguments) {
  const Result<SpecText> spec = read_spec(arguments.spec);
  if (!spec.ok()) return spec.failure();
  verify::VerifyOptions options;
  if (arguments.seeds != 0) options.seeds = arguments.seeds;
  if (arguments.seed != 0) {
    options.first_seed = arguments.seed;
    options.seeds = 1;
  }
  options.bucket = arguments.bucket;
  options.true_size = arguments.true_size;
  Progress progress("verifying");
  options.on_progress = [&](int done, int total) { progress.show(done, total); };
  return verify::verify(spec->text, spec->file, options);
}

nlohmann::json to_json(const verify::VerifyReport& report) {
  nlohmann::json buckets = nlohmann::json::array();
  for (const verify::TestedBucket& bucket : report.buckets) {
    buckets.push_back({{"tested", bucket.tested},
                       {"stands_for", bucket.stand_for},
                       {"protocol", plan::to_string(bucket.protocol)}});
  }
  return {{"ok", report.failures.empty()},
          {"name", report.name},
          {"attention_ranks", report.attention_ranks},
          {"ffn_ranks", report.ffn_ranks},
          {"hidden", report.hidden},
          {"experts", report.experts},
          {"top_k", report.top_k},
          {"buckets", std::move(buckets)},
          {"seeds", report.seeds},
          {"exchanges", report.exchanges},
          {"replays", report.replays},
          {"rows", report.rows},
          {"compared", report.compared},
          {"faults", report.faults},
          {"seconds", report.seconds},
          {"errors", nlohmann::json::parse(diagnostics_to_json(report.failures))}};
}

std::string to_text(const verify::VerifyReport& report) {
  std::string text =
      fmt::format("{}: {}A{}F, H {}, E {}, K {}\n", report.name, report.attention_ranks,
                  report.ffn_ranks, report.hidden, report.experts, report.top_k);
  for (const verify::TestedBucket& bucket : report.buckets) {
    text += fmt::format("  bucket {:<5} {:<13} stands for {}\n", bucket.tested,
                        plan::to_string(bucket.protocol), fmt::join(bucket.stand_for, ", "));
  }
  text += fmt::format(
      "  {} seeds, {} exchanges ({} graph replays), {} rows, {} values compared, {} absent ranks "
      "named, {:.1f} s\n",
      report.seeds, report.exchanges, report.replays, report.rows, report.compared, report.faults,
      report.seconds);
  return text + (report.failures.empty() ? "  verified\n" : "  FAILED\n");
}

}  // namespace

int run_verify(const VerifyArguments& arguments) {
  const Result<verify::VerifyReport> report = verify_spec(arguments);
  if (!report.ok()) return report_failure(report.diagnostics(), arguments.json);
  print_error(to_string(report->failures));
  if (arguments.json) {
    print_out(to_json(*report).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
              "\n");
  } else {
    print_out(to_text(*report));
  }
  return report->failures.empty() ? kExitOk : kExitRefused;
}

}  // namespace afdep::cli
