// afdep: one-worker-3a1f | attention | collect_view | bucket 512 | chunked
// Waits until every reply lies in the view region, which the caller reads in place. Nothing is
// copied. A token without experts is zero.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 512;           // 16 warps
constexpr int kBlocksPerSm = 2;              // leaves 64 registers a thread
constexpr int kWarps = 16;                   // a CTA
constexpr int kGridWarps = 384;              // 24 CTAs
constexpr int kRowVectors = 256;             // 16-byte vectors of a row
constexpr int kChunkRows = 2;                // rows under one release flag
constexpr int64_t kRepliesOffset = 88320;    // region view of this rank's window
constexpr int64_t kReplyRowBytes = 4096;     // a raw row
constexpr int64_t kFlagsOffset = 8476928;    // region reply_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 8192;    // by generation parity
constexpr int64_t kFlagsWorkerBytes = 8192;  // 2048 items of 4 bytes
constexpr int64_t kDestinationsOffset = 0;   // region destinations of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_one_worker_3a1f_collect_view_b512(const __grid_constant__ CollectArgs args) {
  await_previous_kernel();  // the dispatch of this exchange
  release_next_kernel();    // the next dispatch may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const int tokens = static_cast<int>(args.tokens);
  const uint8_t* const flags =
      args.common.window + cfg::kFlagsOffset + half_of(generation) * cfg::kFlagsHalfBytes;
  #pragma unroll 1
  for (int token = block_index() * cfg::kWarps + warp_index(); token < tokens;
       token += cfg::kGridWarps) {
    const Destinations from =
        load_destinations(args.common.workspace + cfg::kDestinationsOffset, token);
    if (!from.empty()) {
      // Published by reply of the one worker, after the rows of the chunk.
      await_replies(args.common, flags + token / cfg::kChunkRows * 4, cfg::kFlagsWorkerBytes, from,
                    token, generation);
      continue;
    }
    for (int first = lane_index(); first < cfg::kRowVectors; first += 32) {
      store_piece<cfg::kRowVectors>(
          args.common.window + cfg::kRepliesOffset + token * cfg::kReplyRowBytes, first,
          Piece<1>{});
    }
  }
  mark_finished(args.common, generation);
}
