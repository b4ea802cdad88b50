#include <string>
#include <vector>

#include <fmt/format.h>

#include "generator/spec/names.h"
#include "generator/spec/rules.h"

namespace afdep::spec {
namespace {

using enum ErrorCode;

// "2, 4 or 8": the numbers of workers over which `experts` divide, for a remedy.
std::string divisors(int experts, int at_most) {
  std::vector<int> found;
  for (int f = 1; f <= at_most; ++f) {
    if (experts % f == 0) found.push_back(f);
  }
  constexpr std::size_t kShown = 8;
  if (found.size() > kShown) {
    found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(kShown));
  }
  std::string text;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i > 0) text += i + 1 == found.size() ? " or " : ", ";
    text += std::to_string(found[i]);
  }
  return text;
}

// Experts of one worker's list: known, and no two alike. Marks them in `placed`. False if any is
// not.
bool check_worker(const RuleContext& context, std::size_t worker, std::vector<int>& placed) {
  const std::vector<int>& list = context.spec.placement.map.value[worker];
  std::vector<bool> here(placed.size());
  bool good = true;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("placement.map[{}][{}]", worker, i);
    const auto expert = static_cast<std::size_t>(list[i]);
    if (expert >= placed.size()) {
      context.report(kPlacement, path, fmt::format("{} = {} is not an expert", path, list[i]),
                     fmt::format("the experts are 0 to {}", placed.size() - 1));
      good = false;
    } else if (here[expert]) {
      context.report(kPlacement, path,
                     fmt::format("{} = {} is on this FFN rank already", path, list[i]),
                     "replicas of an expert belong on different ranks");
      good = false;
    } else {
      here[expert] = true;
      ++placed[expert];
    }
  }
  return good;
}

void check_map(const RuleContext& context, const RankCounts& ranks, int experts, int slots) {
  const std::vector<std::vector<int>>& map = context.spec.placement.map.value;
  if (static_cast<int>(map.size()) != ranks.ffn) {
    context.report(kPlacement, "placement.map",
                   fmt::format("placement.map has {} lists, but the topology has {} FFN ranks",
                               map.size(), ranks.ffn),
                   "give one list of experts for each FFN rank");
    return;
  }
  std::vector<int> placed(static_cast<std::size_t>(experts));
  bool good = true;
  for (std::size_t worker = 0; worker < map.size(); ++worker) {
    good = check_worker(context, worker, placed) && good;
    if (map[worker].size() != map.front().size()) {
      context.report(kPlacement, fmt::format("placement.map[{}]", worker),
                     fmt::format("placement.map[{}] has {} experts, placement.map[0] has {}",
                                 worker, map[worker].size(), map.front().size()),
                     "every FFN rank holds the same number of experts");
      good = false;
    } else if (static_cast<long long>(map[worker].size()) * ranks.ffn != slots) {
      context.report(
          kPlacement, fmt::format("placement.map[{}]", worker),
          fmt::format("placement.map[{}] has {} experts, but {} experts and replicas over "
                      "{} FFN ranks make {} each",
                      worker, map[worker].size(), slots, ranks.ffn, slots / ranks.ffn),
          "set placement.redundant_experts to the replicas in the map");
      good = false;
    }
  }
  // What is wrong with the lists comes first: it may be why an expert is missing.
  if (!good) return;
  for (std::size_t expert = 0; expert < placed.size(); ++expert) {
    if (placed[expert] > 0) continue;
    context.report(kPlacement, "placement.map",
                   fmt::format("placement.map places expert {} nowhere", expert),
                   fmt::format("list every expert 0 to {} at least once", experts - 1));
    return;
  }
}

}  // namespace

void check_placement(const RuleContext& context, const RankCounts& ranks) {
  const Spec& spec = context.spec;
  const Placement& placement = spec.placement;
  const bool is_map = placement.kind.value == PlacementKind::kMap;
  if (context.good("placement.kind", "placement.map") && placement.map.given != is_map) {
    context.report(kPlacement, is_map ? "placement.kind" : "placement.map",
                   is_map ? "placement.kind = map, but placement.map is missing"
                          : fmt::format("placement.map is given, but placement.kind = {}",
                                        to_name(placement.kind.value)),
                   is_map ? "give a list of experts for each FFN rank" : "write kind: map");
  }
  const int experts = spec.model.num_experts.value;
  if (!context.good("model.num_experts", "placement.redundant_experts") || experts == 0) return;
  const bool automatic = placement.redundant_experts.value < 0;
  const int redundant =
      automatic ? (ranks.ffn - experts % ranks.ffn) % ranks.ffn : placement.redundant_experts.value;
  const std::string at =
      placement.redundant_experts.given ? "placement.redundant_experts" : "model.num_experts";
  if (redundant > static_cast<long long>(experts) * (ranks.ffn - 1)) {
    context.report(kPlacement, at,
                   fmt::format("placement.redundant_experts = {} exceeds {} = model.num_experts x "
                               "(FFN ranks - 1)",
                               redundant, static_cast<long long>(experts) * (ranks.ffn - 1)),
                   "an FFN rank holds an expert once at most: use fewer FFN ranks or replicas");
    return;
  }
  const int slots = experts + redundant;
  if (slots % ranks.ffn != 0) {
    context.report(
        kPlacement, at,
        fmt::format(
            "model.num_experts = {} + placement.redundant_experts = {} do not divide over {} "
            "FFN ranks",
            experts, redundant, ranks.ffn),
        fmt::format(
            "{} experts divide over {} FFN ranks; placement.redundant_experts: {} would make "
            "them divide over {}",
            experts, divisors(experts, ranks.ffn), (ranks.ffn - experts % ranks.ffn) % ranks.ffn,
            ranks.ffn));
    return;
  }
  if (is_map && placement.map.given && context.good("placement.kind", "placement.map")) {
    check_map(context, ranks, experts, slots);
  }
}

}  // namespace afdep::spec
