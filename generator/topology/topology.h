// Who is where: ranks with their roles, NVLink domains, rails and the link between each two ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generator/spec/spec.h"

namespace afdep::topology {

// kBoth: every rank of a symmetric group both sends tokens and owns experts.
enum class Role : std::uint8_t { kAttention, kFfn, kBoth };
enum class LinkClass : std::uint8_t {
  kSelf,     // the same rank
  kNvlink,   // the same NVLink domain: plain loads and stores
  kNetwork,  // another domain: puts and signals
};

std::string_view to_string(Role role);       // "attention", "ffn", "both"
std::string_view to_string(LinkClass link);  // "self", "nvlink", "network"

struct Rank {
  int world = 0;
  Role role = Role::kAttention;
  int index = 0;   // within its role
  int domain = 0;  // index in Topology::domains
  int rail = 0;    // position within its domain; ranks with the same rail share a network rail

  friend bool operator==(const Rank&, const Rank&) = default;
};

struct Domain {
  std::string name;
  std::vector<int> ranks;  // world ranks, by rail
  int attention_ranks = 0;
  int ffn_ranks = 0;

  // Ranks of both roles, or of a symmetric group.
  [[nodiscard]] bool mixed() const { return attention_ranks > 0 && ffn_ranks > 0; }
  friend bool operator==(const Domain&, const Domain&) = default;
};

struct Topology {
  int attention_ranks = 0;  // of a symmetric group: every rank
  int ffn_ranks = 0;        // of a symmetric group: every rank
  bool ffn_first =
      true;  // FFN ranks are world ranks [0, ffn_ranks), else attention ranks come first
  bool symmetric = false;
  std::vector<Rank> ranks;  // by world rank
  std::vector<Domain> domains;

  [[nodiscard]] bool one_domain() const { return domains.size() == 1; }
  [[nodiscard]] LinkClass link(int a, int b) const;  // of two world ranks
  // World rank of a role's rank. Of a symmetric group both roles give `index` itself.
  [[nodiscard]] int world_rank(Role role, int index) const;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Precondition: spec::parse accepted the spec, so that its domains partition its ranks. Domains
// given by numbers take the lowest ranks of each role that no domain of listed ranks names, in the
// order written; a rail is a rank's position in that order, with the role that comes first in the
// world first.
Topology build(const spec::Spec& spec);

}  // namespace afdep::topology
