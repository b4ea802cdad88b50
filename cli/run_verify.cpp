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

// Precondition: one of the five names.
verify::Explore explore_of(std::string_view name) {
  using enum verify::Explore;
  for (const verify::Explore each : {kRandom, kPct, kLate, kExhaustive}) {
    if (name == verify::to_string(each)) return each;
  }
  return kAll;
}

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
  options.explore = explore_of(arguments.explore);
  options.replay = arguments.replay;
  options.faults = arguments.faults;
  options.shrink = arguments.shrink;
  Progress progress("verifying");
  options.on_progress = [&](int done, int total) { progress.show(done, total); };
  return verify::verify(spec->text, spec->file, options);
}

nlohmann::json ledger_to_json(const verify::VerifyReport& report) {
  nlohmann::json entries = nlohmann::json::array();
  for (const verify::LedgerEntry& entry : report.ledger) {
    nlohmann::json links = nlohmann::json::array();
    for (const auto& [link, traffic] : entry.seen.links) {
      links.push_back({{"from", link.first},
                       {"to", link.second},
                       {"messages", traffic.messages},
                       {"bytes", traffic.bytes},
                       {"packets", traffic.packets},
                       {"flags", traffic.flags},
                       {"done", traffic.done}});
    }
    entries.push_back({{"bucket", entry.bucket},
                       {"routing", verify::to_string(entry.routing)},
                       {"tokens", entry.tokens},
                       {"hops", entry.seen.hops},
                       {"links", std::move(links)}});
  }
  return entries;
}

nlohmann::json to_json(const verify::VerifyReport& report) {
  nlohmann::json buckets = nlohmann::json::array();
  for (const verify::TestedBucket& bucket : report.buckets) {
    buckets.push_back({{"tested", bucket.tested},
                       {"stands_for", bucket.stand_for},
                       {"protocol", plan::to_string(bucket.protocol)}});
  }
  nlohmann::json searches = nlohmann::json::array();
  for (const verify::ExhaustiveResult& each : report.exhaustive) {
    for (const verify::ExhaustivePass& pass : each.passes) {
      searches.push_back({{"protocol", plan::to_string(each.protocol)},
                          {"stale_loads", pass.stale_loads},
                          {"preemptions", pass.preemptions ? nlohmann::json(*pass.preemptions)
                                                           : nlohmann::json(nullptr)},
                          {"schedules", pass.schedules},
                          {"redundant", pass.redundant},
                          {"longest", pass.longest},
                          {"complete", pass.complete},
                          {"seconds", pass.seconds}});
    }
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
          {"ledger", ledger_to_json(report)},
          {"exhaustive", std::move(searches)},
          {"replay", report.token},
          {"seconds", report.seconds},
          {"errors", nlohmann::json::parse(diagnostics_to_json(report.failures))}};
}

std::string ledger_to_text(const verify::VerifyReport& report) {
  std::string text;
  for (const verify::LedgerEntry& entry : report.ledger) {
    text += fmt::format("  bucket {}, routing {}, {} tokens: {} hops\n", entry.bucket,
                        verify::to_string(entry.routing), entry.tokens, entry.seen.hops);
    text += fmt::format("    {:<12} {:>9} {:>10} {:>8} {:>6} {:>5}\n", "link", "messages", "bytes",
                        "packets", "flags", "done");
    const auto row = [&text](const std::string& name, const verify::LinkTraffic& traffic) {
      text += fmt::format("    {:<12} {:>9} {:>10} {:>8} {:>6} {:>5}\n", name, traffic.messages,
                          traffic.bytes, traffic.packets, traffic.flags, traffic.done);
    };
    for (const auto& [link, traffic] : entry.seen.links) {
      row(fmt::format("{} -> {}", link.first, link.second), traffic);
    }
    row("all", entry.seen.total());
  }
  return text;
}

std::string exhaustive_to_text(const verify::VerifyReport& report) {
  std::string text;
  for (const verify::ExhaustiveResult& each : report.exhaustive) {
    for (const verify::ExhaustivePass& pass : each.passes) {
      text += fmt::format(
          "  {}, exchanges of one token, {}{}: {} {} schedules, {:.1f} s\n",
          plan::to_string(each.protocol),
          pass.stale_loads == 0 ? "newest values"
                                : fmt::format("at most {} stale", pass.stale_loads),
          pass.preemptions ? fmt::format(", at most {} preemptions", *pass.preemptions) : "",
          pass.complete ? "all" : "out of time after", pass.schedules, pass.seconds);
      text += fmt::format("    {} redundant ones given up; {} steps the longest\n", pass.redundant,
                          pass.longest);
    }
  }
  return text + "  bound: the lanes of a warp take each access together\n";
}

std::string to_text(const verify::VerifyReport& report, bool ledger) {
  std::string text =
      fmt::format("{}: {}A{}F, H {}, E {}, K {}\n", report.name, report.attention_ranks,
                  report.ffn_ranks, report.hidden, report.experts, report.top_k);
  for (const verify::TestedBucket& bucket : report.buckets) {
    text += fmt::format("  bucket {:<5} {:<13} stands for {}\n", bucket.tested,
                        plan::to_string(bucket.protocol), fmt::join(bucket.stand_for, ", "));
  }
  if (ledger) text += ledger_to_text(report);
  if (!report.exhaustive.empty()) {
    text += exhaustive_to_text(report);
  } else
    text += fmt::format(
        "  {} seeds, {} exchanges ({} graph replays), {} rows, {} values compared, {} faults "
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
    print_out(to_text(*report, arguments.ledger));
  }
  return report->failures.empty() ? kExitOk : kExitRefused;
}

}  // namespace afdep::cli
