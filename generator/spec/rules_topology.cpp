#include <set>
#include <string>

#include <fmt/format.h>

#include "generator/spec/keys.h"
#include "generator/spec/names.h"
#include "generator/spec/resolve.h"
#include "generator/spec/rules.h"

namespace afdep::spec {
namespace {

using enum ErrorCode;

// A bare "11:1", or the integer that YAML 1.1 makes of it: which side is which?
bool lacks_sides(std::string_view text) {
  return text.find_first_not_of("0123456789:") == std::string_view::npos;
}

std::optional<RankCounts> check_ratio(const RuleContext& context) {
  const TopologySpec& topology = context.spec.topology;
  const std::string& text = topology.ratio.value;
  const std::optional<Ratio> ratio = parse_ratio(text);
  if (!ratio) {
    context.report(
        kRatio, "topology.ratio",
        fmt::format("topology.ratio = {} is not of the form 2A2F or 11A:1F", quoted(text)),
        lacks_sides(text)
            ? "name the sides, as in \"11A:1F\": YAML reads 11:1 as the number 661, and "
              "neither side says which it is"
            : fmt::format("write attention ranks, A, FFN ranks, F, each 1 to {}", kMaxRanks));
    return std::nullopt;
  }
  const int scale = topology.scale.value;
  const int total = (ratio->attention + ratio->ffn) * scale;
  if (total > kMaxRanks) {
    context.report(
        kRatio, topology.scale.given ? "topology.scale" : "topology.ratio",
        fmt::format("topology.ratio = {} x topology.scale = {} makes {} ranks, more than {}", text,
                    scale, total, kMaxRanks),
        "use a smaller ratio or scale");
    return std::nullopt;
  }
  return RankCounts{ratio->attention * scale, ratio->ffn * scale};
}

// A number of ranks beside a ratio has to be what the ratio says.
void check_agreement(const RuleContext& context, std::string_view path, const Field<int>& given,
                     int from_ratio) {
  if (!given.given || given.value == from_ratio) return;
  const TopologySpec& topology = context.spec.topology;
  context.report(
      kRatioAgainstRanks, path,
      fmt::format(
          "{} = {} disagrees with topology.ratio = {} x topology.scale = {}, which makes {}", path,
          given.value, topology.ratio.value, topology.scale.value, from_ratio),
      "leave one of the two out");
}

struct DomainRoles {
  long long attention = 0;
  long long ffn = 0;
};

DomainRoles roles_of(const Spec& spec, const Domain& domain, const RankCounts& ranks) {
  if (domain.ranks.empty()) return {domain.attention, domain.ffn};
  const bool ffn_first = spec.topology.rank_order.value == RankOrder::kFfnFirst;
  DomainRoles roles;
  for (const int rank : domain.ranks) {
    const bool is_ffn = ffn_first ? rank < ranks.ffn : rank >= ranks.attention;
    ++(is_ffn ? roles.ffn : roles.attention);
  }
  return roles;
}

bool check_counted(const RuleContext& context, const RankCounts& ranks) {
  DomainRoles sum;
  for (const Domain& domain : context.spec.topology.domains.value) {
    sum.attention += static_cast<long long>(domain.count) * domain.attention;
    sum.ffn += static_cast<long long>(domain.count) * domain.ffn;
  }
  if (sum.attention == ranks.attention && sum.ffn == ranks.ffn) return true;
  context.report(
      kDomains, "topology.domains",
      fmt::format("topology.domains hold {} attention and {} FFN ranks, but the topology "
                  "has {} and {}",
                  sum.attention, sum.ffn, ranks.attention, ranks.ffn),
      "the domains must partition the ranks: change count, attention or ffn");
  return false;
}

bool check_listed(const RuleContext& context, const RankCounts& ranks) {
  const int total = ranks.attention + ranks.ffn;
  const std::vector<Domain>& domains = context.spec.topology.domains.value;
  std::set<int> seen;
  bool good = true;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    for (std::size_t j = 0; j < domains[i].ranks.size(); ++j) {
      const std::string path = fmt::format("topology.domains[{}].ranks[{}]", i, j);
      const int rank = domains[i].ranks[j];
      if (rank >= total) {
        context.report(kDomains, path, fmt::format("{} = {} is not a rank", path, rank),
                       fmt::format("the ranks are 0 to {}", total - 1));
        good = false;
      } else if (!seen.insert(rank).second) {
        context.report(kDomains, path, fmt::format("{} = {} is listed a second time", path, rank),
                       "each rank belongs to one domain");
        good = false;
      }
    }
  }
  if (!good || static_cast<int>(seen.size()) == total) return good;
  int missing = 0;
  while (seen.contains(missing)) ++missing;
  context.report(kDomains, "topology.domains",
                 fmt::format("topology.domains list {} of {} ranks; rank {} is in none",
                             seen.size(), total, missing),
                 "the domains must partition the ranks: add it to one");
  return false;
}

bool check_partition(const RuleContext& context, const RankCounts& ranks) {
  const std::vector<Domain>& domains = context.spec.topology.domains.value;
  if (domains.empty()) {
    context.report(kDomains, "topology.domains", "topology.domains is an empty list",
                   "leave the key out if all ranks are in one domain");
    return false;
  }
  std::set<std::string> domain_names;
  const bool listed = !domains.front().ranks.empty();
  bool good = true;
  for (std::size_t i = 0; i < domains.size(); ++i) {
    const std::string path = fmt::format("topology.domains[{}]", i);
    if (!domain_names.insert(domains[i].name).second) {
      context.report(
          kDomains, path + ".name",
          fmt::format("{}.name = {} is taken by an earlier domain", path, domains[i].name),
          "give each domain a name of its own");
      good = false;
    }
    if (listed == domains[i].ranks.empty()) {
      context.report(
          kDomains, path,
          listed ? fmt::format("{} counts its ranks, but the domains before it list theirs", path)
                 : fmt::format("{} lists its ranks, but the domains before it count theirs", path),
          "use one form, {name, count, attention, ffn} or {name, ranks}, for all");
      good = false;
    }
  }
  if (!good) return false;
  return listed ? check_listed(context, ranks) : check_counted(context, ranks);
}

void check_mixed(const RuleContext& context, const RankCounts& ranks) {
  const Spec& spec = context.spec;
  const Field<Mixed>& mixed = spec.topology.mixed;
  if (!mixed.given || !context.good("topology.mixed", "topology.rank_order")) return;
  const std::string_view name = to_name(mixed.value);
  if (domain_count(spec) == 1) {
    context.report(kMixedRoles, "topology.mixed",
                   fmt::format("topology.mixed = {}, but all ranks are in one domain", name),
                   "remove the key: it chooses the protocol between several domains");
    return;
  }
  const Domain* both = nullptr;
  for (const Domain& domain : spec.topology.domains.value) {
    const DomainRoles roles = roles_of(spec, domain, ranks);
    if (both == nullptr && roles.attention > 0 && roles.ffn > 0) both = &domain;
  }
  if (mixed.value == Mixed::kForbid && both != nullptr) {
    const DomainRoles roles = roles_of(spec, *both, ranks);
    context.report(
        kMixedRoles, "topology.mixed",
        fmt::format("topology.mixed = forbid, but domain {} holds {} attention and {} FFN "
                    "ranks",
                    both->name, roles.attention, roles.ffn),
        "give each domain one role, or choose union or directional");
  }
  if (mixed.value != Mixed::kForbid && both == nullptr) {
    context.report(kMixedRoles, "topology.mixed",
                   fmt::format("topology.mixed = {}, but every domain holds one role", name),
                   "remove the key: it is for domains that hold both roles");
  }
}

}  // namespace

long long domain_count(const Spec& spec) {
  const std::vector<Domain>& domains = spec.topology.domains.value;
  if (domains.empty()) return 1;
  long long count = 0;
  for (const Domain& domain : domains) count += domain.ranks.empty() ? domain.count : 1;
  return count;
}

std::optional<RankCounts> check_ranks(const RuleContext& context) {
  const TopologySpec& topology = context.spec.topology;
  if (!context.good("topology.ratio", "topology.scale", "topology.attention_ranks",
                    "topology.ffn_ranks")) {
    return std::nullopt;
  }
  if (topology.ratio.given) {
    const std::optional<RankCounts> ranks = check_ratio(context);
    if (!ranks) return std::nullopt;
    check_agreement(context, "topology.attention_ranks", topology.attention_ranks,
                    ranks->attention);
    check_agreement(context, "topology.ffn_ranks", topology.ffn_ranks, ranks->ffn);
    return ranks;
  }
  if (topology.scale.given) {
    context.report(
        kRatio, "topology.scale",
        fmt::format("topology.scale = {} has no topology.ratio to multiply", topology.scale.value),
        "give the ratio, or remove scale");
  }
  if (!topology.attention_ranks.given || !topology.ffn_ranks.given) {
    context.report(kRatio, "topology",
                   "the number of ranks is missing: neither topology.ratio nor both of "
                   "topology.attention_ranks and topology.ffn_ranks",
                   "write for instance ratio: \"2A2F\" under topology");
    return std::nullopt;
  }
  const RankCounts ranks{topology.attention_ranks.value, topology.ffn_ranks.value};
  if (ranks.attention + ranks.ffn > kMaxRanks) {
    context.report(kRatio, "topology.attention_ranks",
                   fmt::format("topology.attention_ranks = {} and topology.ffn_ranks = {} make {} "
                               "ranks, more than {}",
                               ranks.attention, ranks.ffn, ranks.attention + ranks.ffn, kMaxRanks),
                   "use fewer ranks");
    return std::nullopt;
  }
  return ranks;
}

void check_domains(const RuleContext& context, const RankCounts& ranks) {
  if (!context.good("topology.domains")) return;
  const TopologySpec& topology = context.spec.topology;
  if (topology.domains.given && !check_partition(context, ranks)) return;
  check_mixed(context, ranks);
  if (context.good("topology.transport") && topology.transport.value == Transport::kLsa &&
      domain_count(context.spec) > 1) {
    context.report(kTransport, "topology.transport",
                   fmt::format("topology.transport = lsa, but there are {} NVLink domains",
                               domain_count(context.spec)),
                   "lsa reaches one domain only: use gin or auto");
  }
}

}  // namespace afdep::spec
