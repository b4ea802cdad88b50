// afdep: many-workers-4a16f | attention | collect | bucket 128 | chunked
// Sums each token's replies in ascending worker order, once their chunks' flags say that they are
// there.
// A token without experts is zero.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 512;               // 16 warps
constexpr int kBlocksPerSm = 2;                  // leaves 64 registers a thread
constexpr int kWarps = 16;                       // a CTA
constexpr int kGridWarps = 128;                  // 8 CTAs
constexpr int64_t kRowBytes = 14336;             // 7168 x bf16
constexpr int kRowVectors = 896;                 // 16-byte vectors of a row
constexpr int kLaneVectors = 2;                  // of one row, in flight together
constexpr int kPieces = 14;                      // rounds of kLaneVectors that a row takes
constexpr int kRowsInFlight = 2;                 // replies in a lane's registers
constexpr int kChunkRows = 1;                    // rows under one release flag
constexpr int64_t kRepliesOffset = 19595520;     // region replies of this rank's window
constexpr int64_t kRepliesHalfBytes = 58720256;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 7340032;   // 512 items of 14336 bytes
constexpr int64_t kReplyRowBytes = 14336;        // a raw row
constexpr int64_t kFlagsOffset = 137036032;      // region reply_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 32768;       // by generation parity
constexpr int64_t kFlagsWorkerBytes = 2048;      // 512 items of 4 bytes
constexpr int64_t kDestinationsOffset = 0;       // region destinations of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_many_workers_4a16f_collect_b128(const __grid_constant__ CollectArgs args) {
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
      if (arrived) {
        sum =
            sum_replies_piece<cfg::kRowVectors, cfg::kLaneVectors, cfg::kRowsInFlight, true>(
                replies, cfg::kRepliesSlotBytes, from, first);
      }
      store_piece<cfg::kRowVectors>(to, first, sum);
    }
  }
  mark_finished(args.common, generation);
}
