#include "runtime/bundle/manifest.h"

#include <algorithm>

#include "runtime/bundle/names.h"
#include "runtime/support/check.h"

namespace afdep::bundle {

std::string_view to_string(Role role) { return name_of(kRoleNames, role); }
std::string_view to_string(Operation operation) { return name_of(kOperationNames, operation); }
std::string_view to_string(Protocol protocol) { return name_of(kProtocolNames, protocol); }
std::string_view to_string(IdType type) { return name_of(kIdTypeNames, type); }
std::string_view to_string(RouteCheck check) { return name_of(kRouteCheckNames, check); }

const Kernel* Bucket::find(Operation operation) const {
  const auto found = std::ranges::find(kernels, operation, &Kernel::operation);
  return found == kernels.end() ? nullptr : &*found;
}

int Manifest::world_rank(Role role, int index) const {
  const int size = role == Role::kAttention ? attention_ranks : ffn_ranks;
  AFDEP_CHECK(index >= 0 && index < size, "no rank " + std::to_string(index) + " in this role");
  const bool first = (role == Role::kFfn) == ffn_first;
  return first ? index : ranks() - size + index;
}

Role Manifest::role_of(int world_rank) const {
  AFDEP_CHECK(world_rank >= 0 && world_rank < ranks(),
              "no world rank " + std::to_string(world_rank));
  if (ffn_first) return world_rank < ffn_ranks ? Role::kFfn : Role::kAttention;
  return world_rank < attention_ranks ? Role::kAttention : Role::kFfn;
}

int Manifest::index_of(int world_rank) const {
  const Role role = role_of(world_rank);
  if ((role == Role::kFfn) == ffn_first) return world_rank;
  return world_rank - (role == Role::kFfn ? attention_ranks : ffn_ranks);
}

const Bucket* Manifest::find_bucket(int tokens) const {
  const auto found = std::ranges::find(buckets, tokens, &Bucket::tokens);
  return found == buckets.end() ? nullptr : &*found;
}

const Region* find_region(const std::vector<Region>& regions, std::string_view name) {
  const auto found = std::ranges::find(regions, name, &Region::name);
  return found == regions.end() ? nullptr : &*found;
}

std::string cubin_path(std::string_view arch, std::string_view symbol) {
  return "bin/" + std::string(arch) + "/" + std::string(symbol) + ".cubin";
}

}  // namespace afdep::bundle
