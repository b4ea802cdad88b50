// Kernels that wait for each other must all be resident at once, or they wait for ever.
#pragma once

#include <string_view>

#include "runtime/backend/backend.h"
#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep {

struct Residency {
  // Two kernels of each rank fit, so the next one may become resident before the one before it
  // ends.
  bool programmatic = true;
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
