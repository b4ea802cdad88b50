// What the kernels of a traced bundle recorded, with one time axis for all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "afdep/trace_abi.h"
#include "generator/verify/world.h"
#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep::trace {

// What a warp did up to a stamp of this step: "send rows". Empty for kTraceStart.
std::string_view name_of(TraceStep step);

// One warp passed one step.
struct Stamp {
  int rank = 0;  // world
  bundle::Operation operation = bundle::Operation::kDispatch;
  int block = 0;
  int warp = 0;
  TraceStep step = kTraceStart;
  std::uint32_t generation = 0;
  std::uint32_t sm = 0;
  std::uint64_t clock_ns = 0;  // as read
  std::uint64_t cycles = 0;    // of its SM
  double at_ns = 0;            // set by place_in_time

  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// The stamps in a rank's records, by place. `view`: the exchange's collect was the one in place.
std::vector<Stamp> decode(std::span<const std::byte> records, const bundle::Manifest& manifest,
                          int rank, bool view);

// Those of all ranks. The slot's kernels must have ended.
Result<std::vector<Stamp>> read_stamps(verify::World& world, const verify::Slot& slot);

// The clock that all SMs of a GPU share may tick once a microsecond; each SM's own is fine but
// starts anywhere. Sets at_ns to the SM's clock, moved to where all its readings of the shared one
// allow it, and says how far apart two ticks of the shared one are, nanoseconds. All stamps must be
// of one GPU.
double place_in_time(std::vector<Stamp>& stamps);

// The newest exchange that has one behind it, so that neither its start nor its end is special; the
// only one if there is no other. Precondition: there are stamps.
std::uint32_t settled_generation(const std::vector<Stamp>& stamps);

// Those of one exchange, in order of rank, operation, warp and time.
std::vector<Stamp> of_exchange(const std::vector<Stamp>& stamps, std::uint32_t generation);

}  // namespace afdep::trace
