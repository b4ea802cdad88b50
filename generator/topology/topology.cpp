#include "generator/topology/topology.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/spec/resolve.h"
#include "runtime/support/check.h"

namespace afdep::topology {
namespace {

constexpr int kNoDomain = -1;

// Ranks of one role that no domain has yet, lowest first.
class FreeRanks {
 public:
  FreeRanks(const Topology& topology, Role role) {
    for (const Rank& rank : topology.ranks) {
      if (rank.domain == kNoDomain && (rank.role == role || rank.role == Role::kBoth)) {
        worlds_.push_back(rank.world);
      }
    }
  }

  void take(int count, std::vector<int>& into) {
    AFDEP_CHECK(next_ + static_cast<std::size_t>(count) <= worlds_.size(),
                "the domains of a valid spec have more ranks than the spec");
    for (int i = 0; i < count; ++i) into.push_back(worlds_[next_++]);
  }

 private:
  std::vector<int> worlds_;
  std::size_t next_ = 0;
};

void add_ranks(Topology& topology) {
  AFDEP_CHECK(!topology.symmetric || topology.attention_ranks == topology.ffn_ranks,
              fmt::format("a symmetric group of {} senders and {} expert owners",
                          topology.attention_ranks, topology.ffn_ranks));
  const int total =
      topology.symmetric ? topology.ffn_ranks : topology.attention_ranks + topology.ffn_ranks;
  int attention = 0;
  int ffn = 0;
  for (int world = 0; world < total; ++world) {
    Rank rank{.world = world, .domain = kNoDomain};
    const bool is_ffn =
        topology.ffn_first ? world < topology.ffn_ranks : world >= topology.attention_ranks;
    if (topology.symmetric) {
      rank.role = Role::kBoth;
      rank.index = world;
    } else {
      rank.role = is_ffn ? Role::kFfn : Role::kAttention;
      rank.index = is_ffn ? ffn++ : attention++;
    }
    topology.ranks.push_back(rank);
  }
}

void add_domain(Topology& topology, std::string name, std::vector<int> ranks) {
  Domain domain{.name = std::move(name), .ranks = std::move(ranks)};
  for (std::size_t rail = 0; rail < domain.ranks.size(); ++rail) {
    const int world = domain.ranks[rail];
    AFDEP_CHECK(world >= 0 && world < static_cast<int>(topology.ranks.size()),
                fmt::format("domain {} names rank {}", domain.name, world));
    Rank& rank = topology.ranks[static_cast<std::size_t>(world)];
    AFDEP_CHECK(rank.domain == kNoDomain, fmt::format("rank {} is in two domains", world));
    rank.domain = static_cast<int>(topology.domains.size());
    rank.rail = static_cast<int>(rail);
    if (rank.role != Role::kFfn) ++domain.attention_ranks;
    if (rank.role != Role::kAttention) ++domain.ffn_ranks;
  }
  topology.domains.push_back(std::move(domain));
}

void add_domains(Topology& topology, const std::vector<spec::Domain>& written) {
  if (written.empty()) {
    std::vector<int> all;
    for (const Rank& rank : topology.ranks) all.push_back(rank.world);
    add_domain(topology, "all", std::move(all));
    return;
  }
  // Listed ranks are taken before the numbered domains choose, but keep their place in the order.
  Topology listed = topology;
  for (const spec::Domain& domain : written) {
    if (!domain.ranks.empty()) add_domain(listed, domain.name, domain.ranks);
  }
  FreeRanks attention(listed, Role::kAttention);
  FreeRanks ffn(listed, Role::kFfn);
  for (const spec::Domain& domain : written) {
    if (!domain.ranks.empty()) {
      add_domain(topology, domain.name, domain.ranks);
      continue;
    }
    for (int copy = 0; copy < domain.count; ++copy) {
      std::vector<int> ranks;
      if (topology.symmetric) {
        // Both numbers count the same ranks of a symmetric group, or only one of them is given.
        attention.take(std::max(domain.attention, domain.ffn), ranks);
      } else if (topology.ffn_first) {
        ffn.take(domain.ffn, ranks);
        attention.take(domain.attention, ranks);
      } else {
        attention.take(domain.attention, ranks);
        ffn.take(domain.ffn, ranks);
      }
      std::string name = domain.count == 1 ? domain.name : fmt::format("{}-{}", domain.name, copy);
      add_domain(topology, std::move(name), std::move(ranks));
    }
  }
}

}  // namespace

std::string_view to_string(Role role) {
  switch (role) {
    case Role::kAttention:
      return "attention";
    case Role::kFfn:
      return "ffn";
    case Role::kBoth:
      return "both";
  }
  fail_check("role out of its enumeration", std::source_location::current());
}

std::string_view to_string(LinkClass link) {
  switch (link) {
    case LinkClass::kSelf:
      return "self";
    case LinkClass::kNvlink:
      return "nvlink";
    case LinkClass::kNetwork:
      return "network";
  }
  fail_check("link class out of its enumeration", std::source_location::current());
}

LinkClass Topology::link(int a, int b) const {
  const int total = static_cast<int>(ranks.size());
  AFDEP_CHECK(a >= 0 && a < total && b >= 0 && b < total,
              fmt::format("link of ranks {} and {} of {}", a, b, total));
  if (a == b) return LinkClass::kSelf;
  const bool near =
      ranks[static_cast<std::size_t>(a)].domain == ranks[static_cast<std::size_t>(b)].domain;
  return near ? LinkClass::kNvlink : LinkClass::kNetwork;
}

int Topology::world_rank(Role role, int index) const {
  for (const Rank& rank : ranks) {
    if (rank.index == index && (rank.role == role || rank.role == Role::kBoth)) return rank.world;
  }
  fail_check(fmt::format("there is no {} rank {}", to_string(role), index),
             std::source_location::current());
}

Topology build(const spec::Spec& spec) {
  Topology topology;
  topology.attention_ranks = spec::attention_ranks(spec);
  topology.ffn_ranks = spec::ffn_ranks(spec);
  topology.ffn_first = spec.topology.rank_order.value == spec::RankOrder::kFfnFirst;
  topology.symmetric = spec.topology.roles.value == spec::Roles::kSymmetric;
  add_ranks(topology);
  add_domains(topology, spec.topology.domains.value);
  for (const Rank& rank : topology.ranks) {
    AFDEP_CHECK(rank.domain != kNoDomain, fmt::format("rank {} is in no domain", rank.world));
  }
  return topology;
}

}  // namespace afdep::topology
