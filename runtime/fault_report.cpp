#include "runtime/fault_report.h"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace afdep {
namespace {

std::string rank_name(const bundle::Manifest& manifest, int world_rank) {
  return fmt::format("rank {} ({} {})", world_rank, to_string(manifest.role_of(world_rank)),
                     manifest.index_of(world_rank));
}

// A rank of a barrier, numbered attention first; nothing if it is none.
std::optional<int> world_rank_of(const bundle::Manifest& manifest, std::uint32_t number) {
  const auto sources = static_cast<std::uint32_t>(manifest.attention_ranks);
  if (number >= static_cast<std::uint32_t>(manifest.ranks())) return std::nullopt;
  return number < sources
             ? manifest.world_rank(bundle::Role::kAttention, static_cast<int>(number))
             : manifest.world_rank(bundle::Role::kFfn, static_cast<int>(number - sources));
}

// "attention 0", "worker 1".
std::string numbered(const bundle::Manifest& manifest, std::uint32_t number) {
  const std::optional<int> rank = world_rank_of(manifest, number);
  if (!rank) return fmt::format("rank number {}", number);
  return fmt::format("{} {}",
                     manifest.role_of(*rank) == bundle::Role::kFfn ? "worker" : "attention",
                     manifest.index_of(*rank));
}

// The kernel of a role in a part of the exchange.
std::string_view kernel_of(bool attention, std::uint32_t part) {
  if (attention) return part == 1 ? "dispatch" : "collect";
  return part == 1 ? "receive" : "reply";
}

// The operation that waits in this phase, and what for.
std::string awaited(const WaitFault& fault, const bundle::Manifest& manifest, bool attention) {
  switch (fault.phase) {
    case kPhaseEntry:
    case kPhaseExit:
      return fmt::format("at the {} barrier of {} for {} to come in generation {}",
                         fault.phase == kPhaseEntry ? "entry" : "exit",
                         kernel_of(attention, fault.item), numbered(manifest, fault.peer),
                         fault.generation);
    case kPhaseCounts:
      return fmt::format("in {} for {}'s counts of generation {}", kernel_of(attention, fault.item),
                         numbered(manifest, fault.peer), fault.generation);
    case kPhaseGrid:
      return fmt::format("for block {} of its own kernel in generation {}", fault.item,
                         fault.generation);
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
  const bool among_all =
      fault.phase == kPhaseEntry || fault.phase == kPhaseExit || fault.phase == kPhaseCounts;
  if (fault.phase == kPhaseGrid) {
    whom = "the kernel";
  } else if (among_all) {
    if (const auto rank = world_rank_of(manifest, fault.peer)) whom = rank_name(manifest, *rank);
  } else if (fault.peer < static_cast<std::uint32_t>(peers)) {
    whom = rank_name(manifest, manifest.world_rank(other, static_cast<int>(fault.peer)));
  }
  return {ErrorCode::kWaitTimedOut,
          {},
          fmt::format("{} waited {} ms {}: saw {}", rank_name(manifest, world_rank), timeout_ms,
                      awaited(fault, manifest, attention), fault.seen),
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
