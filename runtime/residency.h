// Kernels that wait for each other must all be resident at once, or they wait for ever.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep {

struct Residency {
  // By bucket, in the manifest's order: the bucket's kernels may become resident before the kernel
  // before them ends. They then fit beside any kernel of every rank and beside each other, whatever
  // bucket each rank is in, so that they never keep out one that somebody waits for; and they find
  // SMs that are not crowded: two CTAs of spinning warps on one SM cost more than the launch gap
  // (docs/performance.md, "Programmatic launches").
  std::vector<bool> programmatic;
  // Dynamic shared memory, bytes, that every CTA is to ask for so that SMs can stay at the narrow
  // split (SharedSplit); nothing if the kernels do not fit there, and need the wide one.
  std::optional<std::int64_t> cta_shared_bytes = std::nullopt;
};

// For `ranks_on_device` ranks that share a GPU of `sm_count` SMs. Every rank runs one kernel at a
// time; the bound holds for any mix of buckets, and for buffers that use the same streams. Fails
// with kLaunch, spelling out the sum, if the kernels might not fit.
Result<Residency> check_residency(const bundle::Manifest& manifest, std::string_view arch,
                                  const SmLimits& sm, int sm_count, int ranks_on_device);

// CTAs of `threads` threads, with so many registers each and so much dynamic shared memory, that
// one SM holds.
int ctas_per_sm(const SmLimits& sm, int threads, int registers, std::int64_t shared_bytes);

}  // namespace afdep
