#include "generator/trace/stamps.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>

#include "runtime/support/check.h"

namespace afdep::trace {
namespace {

constexpr int kWarp = 32;

bundle::Operation operation_of(bundle::Role role, int kernel, bool view) {
  if (role == bundle::Role::kFfn) {
    return kernel == 0 ? bundle::Operation::kReceive : bundle::Operation::kReply;
  }
  if (kernel == 0) return bundle::Operation::kDispatch;
  return view ? bundle::Operation::kCollectView : bundle::Operation::kCollect;
}

}  // namespace

std::string_view name_of(TraceStep step) {
  switch (step) {
    case kTraceStart:
      return "";
    case kTraceAwaited:
      return "await previous kernel";
    case kTraceDoneSeen:
      return "await done words";
    case kTraceRoutesRead:
      return "read routes";
    case kTraceRanked:
      return "rank";
    case kTraceTableSent:
      return "send table";
    case kTraceRowsSent:
      return "send rows";
    case kTraceTableSeen:
      return "await table";
    case kTraceChoicesSeen:
      return "await choices";
    case kTraceFirstRow:
      return "await first row";
    case kTraceRowsWritten:
      return "expand rows";
    case kTraceFirstReply:
      return "send first reply";
    case kTraceRepliesSent:
      return "send replies";
    case kTraceReplySeen:
      return "await first reply";
    case kTraceSummed:
      return "sum replies";
    case kTraceEnd:
      return "finish";
  }
  return "unknown step";
}

std::vector<Stamp> decode(std::span<const std::byte> records, const bundle::Manifest& manifest,
                          int rank, bool view) {
  const bundle::Role role = manifest.role_of(rank);
  const bundle::Region* const region = find_region(manifest.layout(role).workspace, "trace");
  AFDEP_CHECK(region != nullptr, "the bundle is not traced");
  AFDEP_CHECK(records.size() == static_cast<std::size_t>(region->bytes()), "another region's size");
  int warps = 0;  // as the plan laid them out
  for (const bundle::Bucket& bucket : manifest.buckets) {
    for (const bundle::Kernel& kernel : bucket.kernels) {
      if (kernel.role == role) warps = std::max(warps, kernel.threads / kWarp);
    }
  }
  std::vector<Stamp> stamps;
  for (int peer = 0; peer < region->peers; ++peer) {
    for (std::int64_t item = 0; item < region->items; ++item) {
      TraceRecord record{};
      std::memcpy(&record, records.data() + peer * region->peer_bytes + item * region->item_bytes,
                  sizeof(record));
      if (record.generation == 0) continue;  // no generation: never written
      const auto place = static_cast<int>(item / kTraceSteps);
      stamps.push_back({.rank = rank,
                        .operation = operation_of(role, peer % kTraceKernels, view),
                        .block = place / warps,
                        .warp = place % warps,
                        .step = static_cast<TraceStep>(record.step),
                        .generation = record.generation,
                        .sm = record.sm,
                        .clock_ns = record.ns,
                        .cycles = record.cycles,
                        .at_ns = 0});
    }
  }
  return stamps;
}

Result<std::vector<Stamp>> read_stamps(verify::World& world, const verify::Slot& slot) {
  std::vector<Stamp> stamps;
  for (int rank = 0; rank < world.ranks(); ++rank) {
    const Result<std::vector<std::byte>> records = world.buffer(rank).read_trace();
    if (!records.ok()) return records.failure();
    // Where replies are packets, collect unpacks them into the view: it is the same kernel.
    const bundle::Bucket* const bucket = world.manifest().find_bucket(slot.bucket);
    const bool view = slot.view && bucket->find(bundle::Operation::kCollectView) != nullptr;
    const std::vector<Stamp> decoded = decode(*records, world.manifest(), rank, view);
    stamps.insert(stamps.end(), decoded.begin(), decoded.end());
  }
  return stamps;
}

std::uint32_t settled_generation(const std::vector<Stamp>& stamps) {
  std::set<std::uint32_t> generations;
  for (const Stamp& stamp : stamps) generations.insert(stamp.generation);
  AFDEP_CHECK(!generations.empty(), "no stamps");
  const auto newest = std::prev(generations.end());
  return newest == generations.begin() ? *newest : *std::prev(newest);
}

std::vector<Stamp> of_exchange(const std::vector<Stamp>& stamps, std::uint32_t generation) {
  std::vector<Stamp> found;
  for (const Stamp& stamp : stamps) {
    if (stamp.generation == generation) found.push_back(stamp);
  }
  std::ranges::sort(found, {}, [](const Stamp& s) {
    return std::tuple(s.rank, s.operation, s.block, s.warp, s.at_ns, s.step);
  });
  return found;
}

}  // namespace afdep::trace
