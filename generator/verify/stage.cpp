#include "generator/verify/stage.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace afdep::verify {
namespace {

using emulator::WritableRange;

// What rank `writer`, one of `writers` of its role, may write in the window of `owner`.
void add_ranges(const World& world, int writer, int writers, int owner,
                std::vector<WritableRange>& ranges) {
  const bundle::Manifest& manifest = world.manifest();
  const std::uint8_t* const window = world.window(owner);
  const bool same_role = manifest.role_of(owner) == manifest.role_of(writer);
  const int writer_index = manifest.index_of(writer);
  const int writer_number = manifest.role_of(writer) == bundle::Role::kAttention
                                ? writer_index
                                : manifest.attention_ranks + writer_index;
  for (const bundle::Region& region : manifest.layout(manifest.role_of(owner)).window) {
    // Ranks of one role meet where every rank has a block, and nowhere else.
    if (same_role && region.peers != manifest.ranks()) continue;
    const std::string name = fmt::format("rank {} {}", owner, region.name);
    if (region.done_words) {
      const std::uint8_t* const word = window + region.offset + std::ptrdiff_t{writer_index} * 4;
      ranges.push_back({word, word + 4, name, true});
      continue;
    }
    for (int half = 0; half < region.halves; ++half) {
      for (int block = 0; block < region.peers; ++block) {
        // With a block a writer only its own; with a block a reply slot any.
        if (region.peers == writers && block != writer_index) continue;
        // With a block for every rank, attention ranks have the first ones.
        if (region.peers == manifest.ranks() && block != writer_number) continue;
        const std::uint8_t* const begin =
            window + region.offset + half * region.half_bytes + block * region.peer_bytes;
        ranges.push_back({begin, begin + region.items * region.item_bytes, name, false});
      }
    }
  }
}

}  // namespace

Result<void> fence_windows(EmulatorBackend& backend, const World& world) {
  const bundle::Manifest& manifest = world.manifest();
  for (int rank = 0; rank < world.ranks(); ++rank) {
    AFDEP_RETURN_IF_FAILED(
        backend.describe(world.window(rank), fmt::format("window of rank {}", rank), rank));
    const bool attention = manifest.role_of(rank) == bundle::Role::kAttention;
    const int writers = attention ? manifest.attention_ranks : manifest.ffn_ranks;
    std::vector<WritableRange> ranges;
    for (int owner = 0; owner < world.ranks(); ++owner) {
      if (owner != rank) add_ranges(world, rank, writers, owner, ranges);
    }
    backend.restrict_foreign_stores(rank, std::move(ranges));
  }
  return {};
}

Result<Stage> make_stage(const EmulatorOptions& options, const bundle::Bundle& bundle,
                         const WorldOptions& world) {
  Result<std::unique_ptr<EmulatorBackend>> backend = EmulatorBackend::create(options);
  if (!backend.ok()) return backend.failure();
  Result<std::unique_ptr<World>> made = World::create(**backend, bundle, world);
  if (!made.ok()) return made.failure();
  AFDEP_RETURN_IF_FAILED(fence_windows(**backend, **made));
  return Stage{std::move(*backend), std::move(*made)};
}

}  // namespace afdep::verify
