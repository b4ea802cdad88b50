#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "generator/verify/session.h"

namespace afdep::verify {
namespace {

constexpr int kTries = 4;  // seeds of a smaller case
constexpr int kMostExchanges = 6;

class Shrinker {
 public:
  Shrinker(const Session& session, const RunOptions& run, double seconds)
      : session_(session),
        run_(run),
        end_(std::chrono::steady_clock::now() +
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                 std::chrono::duration<double>(seconds))) {}

  Result<std::optional<Shrunk>> shrink(const plan::ExchangePlan& failed) {
    // Eager exchanges alone, if they fail: no graphs, no faults.
    run_.faults = false;
    Limits limits;
    limits.exchanges = kMostExchanges;
    AFDEP_RETURN_IF_FAILED(attempt(limits));
    AFDEP_RETURN_IF_FAILED(fewer_ranks(failed));
    if (!best_) return std::move(best_);
    int bucket = 1;
    for (const plan::BucketPlan& each : failed.buckets) bucket = std::max(bucket, each.bucket);
    for (int tokens = 1; tokens < bucket; tokens *= 2) {
      limits = best_->limits;
      limits.tokens = tokens;
      const Result<bool> fails = attempt(limits);
      if (!fails.ok()) return fails.failure();
      if (*fails) break;
    }
    for (int exchanges = 1; exchanges < best_->limits.exchanges; ++exchanges) {
      limits = best_->limits;
      limits.exchanges = exchanges;
      const Result<bool> fails = attempt(limits);
      if (!fails.ok()) return fails.failure();
      if (*fails) break;
    }
    return std::move(best_);
  }

 private:
  Result<void> fewer_ranks(const plan::ExchangePlan& failed) {
    std::vector<std::pair<int, int>> layouts;
    for (int a = 1; a <= std::min(failed.attention_ranks, 3); ++a) {
      for (int f = 1; f <= std::min(failed.ffn_ranks, 3); ++f) {
        if (failed.experts % f == 0 && a + f < failed.ranks()) layouts.emplace_back(a, f);
      }
    }
    std::ranges::sort(layouts, {}, [](const auto& each) {
      return std::pair(each.first + each.second, each.first);
    });
    for (const auto& [a, f] : layouts) {
      const Result<bool> fails =
          attempt({.attention_ranks = a, .ffn_ranks = f, .tokens = 0, .exchanges = kMostExchanges});
      if (!fails.ok()) return fails.failure();
      if (*fails) return {};
    }
    return {};
  }

  // True, and the best so far, if the case fails with one of a few seeds.
  Result<bool> attempt(const Limits& limits) {
    if (std::chrono::steady_clock::now() > end_) return false;
    const Result<Case> made = session_.make_case(limits);
    if (!made.ok()) return false;  // the spec allows no such layout
    for (int i = 0; i < kTries && std::chrono::steady_clock::now() < end_; ++i) {
      RunOptions run = run_;
      run.seed = i == 0 ? run_.seed : static_cast<std::uint64_t>(i);
      run.tokens = limits.tokens;
      run.exchanges = limits.exchanges;
      Result<RunReport> report = verify::run(made->subject, made->plan, made->bundle, run);
      if (!report.ok()) return report.failure();
      if (report->failures.empty()) continue;
      best_ = Shrunk{limits, run, std::move(*report)};
      return true;
    }
    return false;
  }

  const Session& session_;
  RunOptions run_;
  std::chrono::steady_clock::time_point end_;
  std::optional<Shrunk> best_;
};

}  // namespace

Result<std::optional<Shrunk>> shrink(const Session& session, const plan::ExchangePlan& failed,
                                     const RunOptions& run, double seconds) {
  return Shrinker(session, run, seconds).shrink(failed);
}

}  // namespace afdep::verify
