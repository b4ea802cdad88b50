// afdep: top-one-2a4f | attention | collect | bucket 256 | chunked
// Takes each token's one reply once its chunk's flag says that it is there. Nothing to sum.
// A token without experts is zero.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 512;               // 16 warps
constexpr int kBlocksPerSm = 2;                  // leaves 64 registers a thread
constexpr int kWarps = 16;                       // a CTA
constexpr int kGridWarps = 256;                  // 16 CTAs
constexpr int64_t kRowBytes = 10240;             // 5120 x bf16
constexpr int kRowVectors = 640;                 // 16-byte vectors of a row
constexpr int kLaneVectors = 2;                  // of one row, in flight together
constexpr int kPieces = 10;                      // rounds of kLaneVectors that a row takes
constexpr int kChunkRows = 1;                    // rows under one release flag
constexpr int64_t kRepliesOffset = 1753344;      // region replies of this rank's window
constexpr int64_t kRepliesHalfBytes = 10485760;  // by generation parity
constexpr int64_t kReplyRowBytes = 10240;        // a raw row
constexpr int64_t kFlagsOffset = 22724864;       // region reply_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 4096;        // by generation parity
constexpr int64_t kFlagsWorkerBytes = 1024;      // 256 items of 4 bytes
constexpr int64_t kDestinationsOffset = 0;       // region destinations of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_top_one_2a4f_collect_b256(const __grid_constant__ CollectArgs args) {
  await_previous_kernel();  // the dispatch of this exchange
  release_next_kernel();    // the next dispatch may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const int tokens = static_cast<int>(args.tokens);
  const uint32_t half = half_of(generation);
  const uint8_t* const inbox =
      args.common.window + cfg::kRepliesOffset + half * cfg::kRepliesHalfBytes;
  const uint8_t* const flags = args.common.window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes;
#pragma unroll 1
  for (int token = block_index() * cfg::kWarps + warp_index(); token < tokens;
       token += cfg::kGridWarps) {
    const Destinations from =
        load_destinations(args.common.workspace + cfg::kDestinationsOffset, token);
    uint8_t* const to =
        static_cast<uint8_t*>(args.out) + static_cast<int64_t>(token) * cfg::kRowBytes;
    // Published by reply of every worker in `from`, after the rows of the chunk.
    const uint8_t* const flag = flags + token / cfg::kChunkRows * 4;
    const bool arrived =
        await_replies(args.common, flag, cfg::kFlagsWorkerBytes, from, token, generation);
    const uint8_t* const replies = inbox + token * cfg::kReplyRowBytes;
    for (int piece_index = 0; piece_index < cfg::kPieces; ++piece_index) {
      const int first = piece_index * 32 * cfg::kLaneVectors + lane_index();
      Piece<cfg::kLaneVectors> sum{};
      if (arrived) sum = load_piece<cfg::kRowVectors, cfg::kLaneVectors>(replies, first);
      store_piece<cfg::kRowVectors>(to, first, sum);
    }
  }
  mark_finished(args.common, generation);
}
