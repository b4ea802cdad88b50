// afdep: all-reverted-3a1f | ffn | idle_reduce | bucket 128 | chunked
// The epilogue of a rank whose experts, or whose tokens, are none: nothing to do.
#include "afdep/abi.h"
#include "afdep/thread.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 512;  // 16 warps
constexpr int kBlocksPerSm = 2;     // leaves 64 registers a thread
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_idle_reduce_b128(const __grid_constant__ ReplyArgs) {
  await_previous_kernel();  // so that whoever waits for this one waits for that one
  release_next_kernel();
}
