#include "generator/verify/stage.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace afdep::verify {
namespace {

using emulator::WritableRange;

// What rank `writer` of a role may write in the window of `owner`, a rank of the other role.
void add_ranges(const World& world, int writer_index, int writers, int owner,
                std::vector<WritableRange>& ranges) {
  const bundle::Manifest& manifest = world.manifest();
  const std::uint8_t* const window = world.window(owner);
  for (const bundle::Region& region : manifest.layout(manifest.role_of(owner)).window) {
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
      if (manifest.role_of(owner) == manifest.role_of(rank)) continue;
      add_ranges(world, manifest.index_of(rank), writers, owner, ranges);
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
