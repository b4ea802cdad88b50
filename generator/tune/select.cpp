#include "generator/tune/select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "generator/generate.h"
#include "generator/plan/shape.h"
#include "generator/spec/resolve.h"
#include "runtime/support/check.h"

namespace afdep::tune {
namespace {

using spec::NumSms;
using spec::Protocol;

constexpr double kEqual = 1.01;  // times within 1 % are the same time: repeats spread that far

using Pair = std::pair<int, int>;  // attention, ffn; ordered
Pair pair_of(const NumSms& sms) { return {sms.attention, sms.ffn}; }

// The times of one bucket.
struct Measured {
  double best = std::numeric_limits<double>::infinity();
  std::map<Pair, std::map<Protocol, double>> by_pair;
};

Measured measured_of(const BucketArms& bucket, const State& state) {
  Measured measured;
  for (const Arm& arm : bucket.arms) {
    const auto found = state.samples.find(arm.name());
    if (found == state.samples.end() || found->second.empty()) continue;
    const double us = median_of(found->second);
    measured.best = std::min(measured.best, us);
    for (const Variant& variant : arm.variants) {
      measured.by_pair[pair_of(variant.sms)][variant.protocol] = us;
    }
  }
  return measured;
}

double fastest(const std::map<Protocol, double>& times) {
  double us = std::numeric_limits<double>::infinity();
  for (const auto& [protocol, each] : times) us = std::min(us, each);
  return us;
}

Protocol protocol_of(plan::Protocol protocol) {
  switch (protocol) {
    case plan::Protocol::kFlagInData:
      return Protocol::kFlagInData;
    case plan::Protocol::kChunked:
      return Protocol::kChunked;
    case plan::Protocol::kBulk:
      return Protocol::kBulk;
  }
  fail_check("unknown protocol", std::source_location::current());
}

Failure nothing_measured(const State& state) {
  std::string why = "nothing was measured";
  if (!state.refused.empty()) {
    const auto& [arm, reason] = *state.refused.begin();
    why = fmt::format("{}: {}", arm, reason);
  }
  return {ErrorCode::kLaunch, "no numbers of SMs could be measured in every bucket; " + why,
          "name smaller numbers with --sms"};
}

}  // namespace

double median_of(std::vector<double> samples) {
  AFDEP_CHECK(!samples.empty(), "the median of nothing");
  std::ranges::sort(samples);
  return samples[samples.size() / 2];
}

Variant untuned_variant(const spec::Spec& spec, int bucket) {
  const Result<plan::ExchangePlan> plan = plan_exchange(spec);
  Variant variant{.bucket = bucket, .protocol = Protocol::kAuto, .sms = spec.num_sms.value};
  if (variant.sms.attention == 0) variant.sms.attention = plan::kDefaultSms;
  if (variant.sms.ffn == 0) variant.sms.ffn = plan::kDefaultSms;
  if (!plan.ok()) return variant;
  for (const plan::BucketPlan& each : plan->buckets) {
    if (each.bucket == bucket) variant.protocol = protocol_of(each.protocol);
  }
  return variant;
}

Result<Choice> choose(const spec::Spec& spec, const std::vector<BucketArms>& arms,
                      const State& state) {
  std::vector<Measured> measured;
  std::map<Pair, int> seen;  // in so many buckets
  for (const BucketArms& bucket : arms) {
    measured.push_back(measured_of(bucket, state));
    for (const auto& [pair, times] : measured.back().by_pair) ++seen[pair];
  }
  std::map<Pair, double> scores;
  for (const auto& [pair, count] : seen) {
    if (count != static_cast<int>(arms.size())) continue;
    double logs = 0;
    for (const Measured& bucket : measured) {
      logs += std::log(fastest(bucket.by_pair.at(pair)) / bucket.best);
    }
    scores[pair] = std::exp(logs / static_cast<double>(arms.size()));
  }
  if (scores.empty()) return nothing_measured(state);

  const double lowest =
      std::ranges::min_element(scores, {}, [](const auto& each) { return each.second; })->second;
  const auto cost = [&](const std::pair<const Pair, double>& each) {
    const int sms = attention_ranks(spec) * each.first.first + ffn_ranks(spec) * each.first.second;
    return std::tuple(each.second > lowest * kEqual, sms, each.second);
  };
  const auto best = std::ranges::min_element(scores, {}, cost);
  Choice choice{
      .sms = {best->first.first, best->first.second}, .score = best->second, .buckets = {}};
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::map<Protocol, double>& times = measured[i].by_pair.at(best->first);
    const double us = fastest(times);
    const Variant untuned = untuned_variant(spec, arms[i].bucket);
    const auto own = times.find(untuned.protocol);
    BucketChoice bucket{.bucket = arms[i].bucket,
                        .protocol = Protocol::kAuto,
                        .us = us,
                        .untuned = std::nullopt,
                        .untuned_us = 0};
    for (const auto& [protocol, each] : times) {
      if (each == us) bucket.protocol = protocol;
    }
    if (own != times.end() && own->second <= us * kEqual) {
      bucket.protocol = own->first;
      bucket.us = own->second;
    }
    const auto before = measured[i].by_pair.find(pair_of(untuned.sms));
    if (before != measured[i].by_pair.end() && before->second.contains(untuned.protocol)) {
      bucket.untuned = untuned;
      bucket.untuned_us = before->second.at(untuned.protocol);
    }
    choice.buckets.push_back(bucket);
  }
  return choice;
}

}  // namespace afdep::tune
