#include "generator/trace/chrome.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace afdep::trace {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kNsAUs = 1000;
constexpr int kMaxWarps = 32;  // of a CTA: thread ids of a process are CTA x kMaxWarps + warp

double first_ns(const std::vector<Stamp>& stamps) {
  return stamps.empty() ? 0 : std::ranges::min_element(stamps, {}, &Stamp::at_ns)->at_ns;
}

// Three decimals: the format's unit is a microsecond, ours a nanosecond.
double rounded(double us) {
  return static_cast<double>(static_cast<std::int64_t>(us * kNsAUs + 0.5)) / kNsAUs;
}

Json slice(std::string_view name, std::string_view category, const Stamp& begin, const Stamp& end,
           double origin) {
  const double from = rounded((begin.at_ns - origin) / kNsAUs);
  const double to = rounded((end.at_ns - origin) / kNsAUs);
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"ts", from},
          {"dur", rounded(std::max(0.0, to - from))},
          {"pid", end.rank},
          {"tid", end.block * kMaxWarps + end.warp},
          {"args", {{"generation", end.generation}, {"sm", end.sm}}}};
}

Json named(std::string_view what, int process, int thread, const std::string& name) {
  return {
      {"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

void add_names(const std::vector<Stamp>& stamps, const bundle::Manifest& manifest, Json& events) {
  std::set<int> ranks;
  std::set<std::tuple<int, int, int>> warps;
  for (const Stamp& stamp : stamps) {
    ranks.insert(stamp.rank);
    warps.emplace(stamp.rank, stamp.block, stamp.warp);
  }
  for (const int rank : ranks) {
    events.push_back(
        named("process_name", rank, 0,
              fmt::format("rank {}: {} {}", rank, bundle::to_string(manifest.role_of(rank)),
                          manifest.index_of(rank))));
  }
  for (const auto& [rank, block, warp] : warps) {
    events.push_back(named("thread_name", rank, block * kMaxWarps + warp,
                           fmt::format("CTA {} warp {}", block, warp)));
  }
}

bool same_kernel(const Stamp& a, const Stamp& b) {
  return std::tuple(a.rank, a.operation, a.block, a.warp) ==
         std::tuple(b.rank, b.operation, b.block, b.warp);
}

}  // namespace

std::string to_chrome(const std::vector<Stamp>& stamps, const bundle::Manifest& manifest) {
  const double origin = first_ns(stamps);
  Json events = Json::array();
  add_names(stamps, manifest, events);
  for (std::size_t first = 0; first < stamps.size();) {
    std::size_t after = first + 1;
    while (after < stamps.size() && same_kernel(stamps[first], stamps[after])) ++after;
    const std::string_view kernel = bundle::to_string(stamps[first].operation);
    events.push_back(slice(kernel, "kernel", stamps[first], stamps[after - 1], origin));
    for (std::size_t i = first + 1; i < after; ++i) {
      events.push_back(slice(name_of(stamps[i].step), kernel, stamps[i - 1], stamps[i], origin));
    }
    first = after;
  }
  const Json trace{{"displayTimeUnit", "ns"},
                   {"otherData",
                    {{"name", manifest.name},
                     {"digest", manifest.spec_digest},
                     {"generation", stamps.empty() ? 0 : stamps.front().generation}}},
                   {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<StepTimes> summarize(const std::vector<Stamp>& stamps) {
  const double origin = first_ns(stamps);
  std::map<std::pair<bundle::Operation, TraceStep>, std::vector<double>> times;
  for (const Stamp& stamp : stamps) {
    times[{stamp.operation, stamp.step}].push_back((stamp.at_ns - origin) / kNsAUs);
  }
  std::vector<StepTimes> steps;
  for (auto& [key, all] : times) {
    std::ranges::sort(all);
    steps.push_back({.operation = key.first,
                     .step = key.second,
                     .warps = static_cast<int>(all.size()),
                     .first_us = all.front(),
                     .median_us = all[all.size() / 2],
                     .last_us = all.back()});
  }
  std::ranges::sort(steps, {}, [](const StepTimes& each) {
    return std::tuple(each.operation, each.median_us, each.step);
  });
  return steps;
}

}  // namespace afdep::trace
