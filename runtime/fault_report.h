// Fault records of a rank's kernels, in words.
#pragma once

#include <cstdint>

#include "afdep/abi.h"
#include "runtime/bundle/manifest.h"
#include "runtime/support/diagnostic.h"

namespace afdep {

// "rank 3 (attention 1) waited 30000 ms in collect for worker 0's reply to token 5 of generation
// 17: saw 15".
Diagnostic describe(const WaitFault& fault, const bundle::Manifest& manifest, int world_rank,
                    std::int64_t timeout_ms);

// "rank 3 (attention 1): expert id 200 of token 5, choice 2, is not in [0, 128) (generation 17)".
Diagnostic describe(const RouteFault& fault, const bundle::Manifest& manifest, int world_rank);

}  // namespace afdep
