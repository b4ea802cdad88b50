#include "generator/matrix/run_cell.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "generator/generate.h"
#include "generator/verify/verify.h"

namespace afdep::matrix {
namespace {

constexpr int kSeeds = 2;

// The machine's fault if one of them is, since no spec can repair it.
bool is_environment(const Diagnostics& diagnostics) {
  return std::ranges::any_of(diagnostics,
                             [](const Diagnostic& each) { return exit_code(each.code) != 1; });
}

CellResult stopped(Outcome outcome, const Diagnostics& diagnostics, CellResult so_far) {
  so_far.outcome = is_environment(diagnostics) ? Outcome::kError : outcome;
  so_far.diagnostics = diagnostics;
  return so_far;
}

std::string bytes_text(double bytes) {
  if (bytes < 10'000) return fmt::format("{:.0f} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KB", bytes / 1e3);
  return fmt::format("{:.1f} MB", bytes / 1e6);
}

Facts facts_of(const verify::VerifyReport& report) {
  Facts facts;
  facts.emplace_back(
      "run as", fmt::format("{}A{}F, H {}, E {}, K {}", report.attention_ranks, report.ffn_ranks,
                            report.hidden, report.experts, report.top_k));
  for (const verify::TestedBucket& bucket : report.buckets) {
    facts.emplace_back(fmt::format("bucket {}", bucket.tested),
                       fmt::format("{}, stands for {}", plan::to_string(bucket.protocol),
                                   fmt::join(bucket.stand_for, ", ")));
  }
  facts.emplace_back("seeds", fmt::format("{}", report.seeds));
  facts.emplace_back("exchanges",
                     fmt::format("{}, of them {} graph replays", report.exchanges, report.replays));
  facts.emplace_back("rows received", fmt::format("{}", report.rows));
  facts.emplace_back("values compared", fmt::format("{}", report.compared));
  facts.emplace_back("faults named", fmt::format("{}", report.faults));
  return facts;
}

Facts ledger_of(const verify::VerifyReport& report) {
  Facts facts;
  for (const verify::LedgerEntry& entry : report.ledger) {
    const verify::LinkTraffic all = entry.seen.total();
    facts.emplace_back(
        fmt::format("bucket {}, {}, {} tokens", entry.bucket, verify::to_string(entry.routing),
                    entry.tokens),
        fmt::format("{} hops; {} messages, {}, {} packets, {} flags, {} done words over {} links",
                    entry.seen.hops, all.messages, bytes_text(static_cast<double>(all.bytes)),
                    all.packets, all.flags, all.done, entry.seen.links.size()));
  }
  return facts;
}

std::string compiled_text(const std::vector<CompiledModule>& modules) {
  int registers = 0;
  for (const CompiledModule& module : modules) registers = std::max(registers, module.registers);
  return fmt::format("{} cubins, at most {} registers a thread", modules.size(), registers);
}

}  // namespace

Facts figures_of(const plan::ExchangePlan& plan) {
  Facts facts;
  facts.emplace_back("window, attention rank",
                     bytes_text(static_cast<double>(plan.attention.window_bytes)));
  facts.emplace_back("window, FFN rank", bytes_text(static_cast<double>(plan.ffn.window_bytes)));
  for (const plan::BucketPlan& bucket : plan.buckets) {
    facts.emplace_back(
        fmt::format("bucket {}", bucket.bucket),
        fmt::format("{}, {} + {} wire bytes a rank out and back, {} hops, floor {:.1f} us",
                    plan::to_string(bucket.protocol),
                    bytes_text(bucket.traffic.dispatch_wire_bytes),
                    bytes_text(bucket.traffic.reply_wire_bytes), bucket.critical_path.size(),
                    bucket.floor.total_us()));
  }
  return facts;
}

CellResult run_cell(const spec::Spec& spec, std::string_view text, const std::string& file,
                    const CellOptions& options, const std::function<void(std::string_view)>& tell) {
  CellResult result;
  tell("plan");
  const Result<plan::ExchangePlan> plan = plan_exchange(spec);
  if (!plan) return stopped(Outcome::kRefused, plan.diagnostics(), std::move(result));
  result.figures = figures_of(*plan);

  tell(options.compile ? "compile" : "emit");
  // The cells are what runs in parallel.
  const Result<Generated> generated = generate(spec, {.emit_only = !options.compile, .threads = 1});
  if (!generated) return stopped(Outcome::kFailed, generated.diagnostics(), std::move(result));
  result.figures.emplace_back(
      "kernels", options.compile ? fmt::format("{} emitted; {}", generated->sources.size(),
                                               compiled_text(generated->modules))
                                 : fmt::format("{} emitted", generated->sources.size()));

  if (options.verify) {
    tell("verify");
    verify::VerifyOptions verify_options;
    verify_options.seeds =
        options.seeds != 0 ? options.seeds : std::min(kSeeds, verify::default_seeds(plan->ranks()));
    verify_options.first_seed = options.first_seed;
    const Result<verify::VerifyReport> report = verify::verify(text, file, verify_options);
    if (!report) return stopped(Outcome::kFailed, report.diagnostics(), std::move(result));
    result.verified = facts_of(*report);
    result.ledger = ledger_of(*report);
    if (!report->failures.empty()) {
      return stopped(Outcome::kFailed, report->failures, std::move(result));
    }
  }
  result.outcome = Outcome::kPassed;
  return result;
}

}  // namespace afdep::matrix
