// afdep: all-reverted-3a1f | attention | idle_expand | bucket 256 | bulk
// The epilogue of a rank whose experts, or whose tokens, are none: nothing to do.
#include "afdep/abi.h"
#include "afdep/thread.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 640;  // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;     // leaves 96 registers a thread
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_idle_expand_b256(const __grid_constant__ DispatchArgs) {
  await_previous_kernel();  // so that whoever waits for this one waits for that one
  release_next_kernel();
}
