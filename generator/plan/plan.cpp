#include "generator/plan/plan.h"

#include <algorithm>

#include "runtime/support/check.h"

namespace afdep::plan {

std::int64_t ExchangePlan::receive_rows(int bucket) const {
  AFDEP_CHECK(ffn_ranks > 0 && expert_alignment > 0, "receive_rows() of an incomplete plan");
  const std::int64_t tokens = static_cast<std::int64_t>(attention_ranks) * bucket;
  // A token's experts are distinct, so at most local_experts() of its top_k are here.
  const std::int64_t rows = tokens * std::min(top_k, local_experts());
  // Each expert that has a row starts aligned, after at most alignment - 1 rows of padding.
  const std::int64_t alignment = expert_alignment;
  const std::int64_t used_experts = std::min<std::int64_t>(local_experts(), rows);
  const std::int64_t padded = (rows + used_experts * (alignment - 1)) / alignment * alignment;
  // No expert has more than one row of a token.
  const std::int64_t all_full =
      local_experts() * ((tokens + alignment - 1) / alignment * alignment);
  return std::min(padded, all_full);
}

int ExchangePlan::world_rank(Role role, int index) const {
  const int ranks_of_role = role == Role::kAttention ? attention_ranks : ffn_ranks;
  AFDEP_CHECK(index >= 0 && index < ranks_of_role, std::string(to_string(role)) + " rank " +
                                                       std::to_string(index) + " of " +
                                                       std::to_string(ranks_of_role));
  const bool first = ffn_first == (role == Role::kFfn);
  return first ? index : ranks() - ranks_of_role + index;
}

}  // namespace afdep::plan
