#include "runtime/fault_report.h"

#include <fmt/format.h>

#include <string>

namespace afdep {
namespace {

std::string rank_name(const bundle::Manifest& manifest, int world_rank) {
  return fmt::format("rank {} ({} {})", world_rank, to_string(manifest.role_of(world_rank)),
                     manifest.index_of(world_rank));
}

// The operation that waits in this phase, and what for.
std::string awaited(const WaitFault& fault) {
  switch (fault.phase) {
    case kPhaseDone:
      return fmt::format("in dispatch for worker {} to finish generation {}", fault.peer,
                         fault.expected);
    case kPhaseTable:
      return fmt::format("in receive for attention {}'s top-k table at token {} of generation {}",
                         fault.peer, fault.item, fault.generation);
    case kPhaseRow:
      return fmt::format("in receive for attention {}'s row of token {} of generation {}",
                         fault.peer, fault.item, fault.generation);
    case kPhaseReply:
      return fmt::format("in collect for worker {}'s reply to token {} of generation {}",
                         fault.peer, fault.item, fault.generation);
    default:
      return fmt::format("in phase {} for peer {}, item {}, generation {}", fault.phase, fault.peer,
                         fault.item, fault.generation);
  }
}

}  // namespace

Diagnostic describe(const WaitFault& fault, const bundle::Manifest& manifest, int world_rank,
                    std::int64_t timeout_ms) {
  const bool attention = manifest.role_of(world_rank) == bundle::Role::kAttention;
  const bundle::Role other = attention ? bundle::Role::kFfn : bundle::Role::kAttention;
  const int peers = attention ? manifest.ffn_ranks : manifest.attention_ranks;
  std::string whom = "the awaited rank";
  if (fault.peer < static_cast<std::uint32_t>(peers)) {
    whom = rank_name(manifest, manifest.world_rank(other, static_cast<int>(fault.peer)));
  }
  return {ErrorCode::kWaitTimedOut,
          {},
          fmt::format("{} waited {} ms {}: saw {}", rank_name(manifest, world_rank), timeout_ms,
                      awaited(fault), fault.seen),
          fmt::format("find out why {} is late or gone, then close the buffers of all ranks and "
                      "create new ones",
                      whom)};
}

Diagnostic describe(const RouteFault& fault, const bundle::Manifest& manifest, int world_rank) {
  const std::string problem = fault.error == kRouteDuplicate
                                  ? std::string("repeats an earlier choice of the token")
                                  : fmt::format("is neither -1 nor in [0, {})", manifest.experts);
  return {ErrorCode::kRouteId,
          {},
          fmt::format("{}: expert id {} of token {}, choice {}, {} (generation {})",
                      rank_name(manifest, world_rank), fault.value, fault.token, fault.choice,
                      problem, fault.generation),
          "the choice was skipped as if it were -1; later ones may be wrong too"};
}

}  // namespace afdep
