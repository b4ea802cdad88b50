#include "generator/topology/topology.h"

#include <gmock/gmock.h>

#include "runtime/support/check.h"

namespace afdep::topology {
namespace {

using ::testing::ElementsAre;

spec::Spec spec_of(int attention, int ffn, spec::RankOrder order = spec::RankOrder::kFfnFirst) {
  spec::Spec spec;
  spec.topology.attention_ranks.value = attention;
  spec.topology.ffn_ranks.value = ffn;
  spec.topology.rank_order.value = order;
  spec.topology.roles.value = spec::Roles::kDisjoint;
  spec.topology.scale.value = 1;
  return spec;
}

spec::Domain numbered(std::string name, int count, int attention, int ffn) {
  return {std::move(name), count, attention, ffn, {}};
}

spec::Domain listed(std::string name, std::vector<int> ranks) {
  return {std::move(name), 1, 0, 0, std::move(ranks)};
}

std::vector<int> worlds(const Topology& topology, Role role) {
  std::vector<int> found;
  for (const Rank& rank : topology.ranks) {
    if (rank.role == role) found.push_back(rank.world);
  }
  return found;
}

TEST(Topology, FfnRanksComeFirstByDefault) {
  const Topology topology = build(spec_of(3, 2));
  EXPECT_THAT(worlds(topology, Role::kFfn), ElementsAre(0, 1));
  EXPECT_THAT(worlds(topology, Role::kAttention), ElementsAre(2, 3, 4));
  EXPECT_EQ(topology.ranks[3].index, 1);
  EXPECT_EQ(topology.world_rank(Role::kAttention, 2), 4);
  EXPECT_EQ(topology.world_rank(Role::kFfn, 1), 1);
}

TEST(Topology, AttentionFirst) {
  const Topology topology = build(spec_of(3, 2, spec::RankOrder::kAttentionFirst));
  EXPECT_THAT(worlds(topology, Role::kAttention), ElementsAre(0, 1, 2));
  EXPECT_THAT(worlds(topology, Role::kFfn), ElementsAre(3, 4));
  EXPECT_EQ(topology.world_rank(Role::kFfn, 0), 3);
}

TEST(Topology, RatioTimesScale) {
  spec::Spec spec = spec_of(0, 0);
  spec.topology.ratio.value = "3A1F";
  spec.topology.scale.value = 4;
  const Topology topology = build(spec);
  EXPECT_EQ(topology.attention_ranks, 12);
  EXPECT_EQ(topology.ffn_ranks, 4);
  EXPECT_EQ(topology.ranks.size(), 16u);
}

TEST(Topology, WithoutDomainsThereIsOne) {
  const Topology topology = build(spec_of(2, 2));
  ASSERT_TRUE(topology.one_domain());
  EXPECT_EQ(topology.domains[0].name, "all");
  EXPECT_THAT(topology.domains[0].ranks, ElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(topology.domains[0].mixed());
  EXPECT_EQ(topology.link(1, 1), LinkClass::kSelf);
  EXPECT_EQ(topology.link(0, 3), LinkClass::kNvlink);
}

// 11:1 over 12 domains of 2 GPUs, each domain of one role.
TEST(Topology, DomainsOfOneRole) {
  spec::Spec spec = spec_of(22, 2);
  spec.topology.domains.value = {numbered("experts", 1, 0, 2), numbered("sources", 11, 2, 0)};
  const Topology topology = build(spec);
  ASSERT_EQ(topology.domains.size(), 12u);
  EXPECT_FALSE(topology.one_domain());
  EXPECT_EQ(topology.domains[0].name, "experts");
  EXPECT_THAT(topology.domains[0].ranks, ElementsAre(0, 1));
  EXPECT_EQ(topology.domains[1].name, "sources-0");
  EXPECT_EQ(topology.domains[11].name, "sources-10");
  EXPECT_THAT(topology.domains[11].ranks, ElementsAre(22, 23));
  EXPECT_EQ(topology.ranks[23].rail, 1);
  EXPECT_EQ(topology.ranks[23].domain, 11);
  EXPECT_EQ(topology.link(22, 23), LinkClass::kNvlink);
  EXPECT_EQ(topology.link(0, 23), LinkClass::kNetwork);
  EXPECT_FALSE(topology.domains[0].mixed());
}

// 22A2F over 3 domains of 8 GPUs: the FFN ranks share their domain with six attention ranks.
TEST(Topology, MixedDomain) {
  spec::Spec spec = spec_of(22, 2);
  spec.topology.domains.value = {numbered("mixed", 1, 6, 2), numbered("sources", 2, 8, 0)};
  const Topology topology = build(spec);
  ASSERT_EQ(topology.domains.size(), 3u);
  EXPECT_THAT(topology.domains[0].ranks, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_TRUE(topology.domains[0].mixed());
  EXPECT_THAT(topology.domains[1].ranks, ElementsAre(8, 9, 10, 11, 12, 13, 14, 15));
  EXPECT_FALSE(topology.domains[1].mixed());
}

TEST(Topology, ListedRanksAreLeftOutOfNumberedDomains) {
  spec::Spec spec = spec_of(4, 2);  // FFN 0 and 1, attention 2..5
  spec.topology.domains.value = {numbered("rest", 1, 3, 1), listed("named", {4, 0})};
  const Topology topology = build(spec);
  ASSERT_EQ(topology.domains.size(), 2u);
  EXPECT_THAT(topology.domains[0].ranks, ElementsAre(1, 2, 3, 5));
  EXPECT_THAT(topology.domains[1].ranks, ElementsAre(4, 0));
  EXPECT_EQ(topology.ranks[0].rail, 1);
  EXPECT_EQ(topology.ranks[4].rail, 0);
}

TEST(Topology, SymmetricRanksHoldBothRoles) {
  spec::Spec spec = spec_of(4, 4);
  spec.topology.roles.value = spec::Roles::kSymmetric;
  const Topology topology = build(spec);
  ASSERT_EQ(topology.ranks.size(), 4u);
  EXPECT_EQ(topology.ranks[3].role, Role::kBoth);
  EXPECT_EQ(topology.world_rank(Role::kFfn, 3), 3);
  EXPECT_EQ(topology.world_rank(Role::kAttention, 3), 3);
  EXPECT_EQ(topology.domains[0].attention_ranks, 4);
  EXPECT_EQ(topology.domains[0].ffn_ranks, 4);
}

TEST(Topology, BrokenDomainsAreInternalErrors) {
  spec::Spec spec = spec_of(2, 1);
  spec.topology.domains.value = {listed("a", {0, 1})};
  EXPECT_THROW(build(spec), InternalError);  // rank 2 is in no domain
  spec.topology.domains.value = {listed("a", {0, 1, 2}), listed("b", {1})};
  EXPECT_THROW(build(spec), InternalError);
  EXPECT_THROW((void)build(spec_of(2, 1)).link(0, 3), InternalError);
  EXPECT_THROW((void)build(spec_of(2, 1)).world_rank(Role::kFfn, 1), InternalError);
}

}  // namespace
}  // namespace afdep::topology
