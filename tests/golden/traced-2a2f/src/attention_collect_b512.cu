// afdep: traced-2a2f | attention | collect | bucket 512 | chunked
// Sums each token's replies in ascending worker order, once their chunks' flags say that they are
// there.
// A token without experts is zero.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/trace.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 512;               // 16 warps
constexpr int kBlocksPerSm = 2;                  // leaves 64 registers a thread
constexpr int kWarps = 16;                       // a CTA
constexpr int kGridWarps = 384;                  // 24 CTAs
constexpr int64_t kRowBytes = 4096;              // 2048 x bf16
constexpr int kRowVectors = 256;                 // 16-byte vectors of a row
constexpr int kLaneVectors = 2;                  // of one row, in flight together
constexpr int kPieces = 4;                       // rounds of kLaneVectors that a row takes
constexpr int kRowsInFlight = 2;                 // replies in a lane's registers
constexpr int kChunkRows = 2;                    // rows under one release flag
constexpr int64_t kRepliesOffset = 2818304;      // region replies of this rank's window
constexpr int64_t kRepliesHalfBytes = 16777216;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 8388608;   // 2048 items of 4096 bytes
constexpr int64_t kReplyRowBytes = 4096;         // a raw row
constexpr int64_t kFlagsOffset = 36372736;       // region reply_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 16384;       // by generation parity
constexpr int64_t kFlagsWorkerBytes = 8192;      // 2048 items of 4 bytes
constexpr int64_t kDestinationsOffset = 0;       // region destinations of the workspace
constexpr int64_t kTraceOffset = 212992;         // region trace of the workspace
constexpr int64_t kTraceExchangeBytes = 393216;  // the last 4 are kept
constexpr int kTraceWarps = 16;                  // places a block, the same in every kernel of the role
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_traced_2a2f_collect_b512(const __grid_constant__ CollectArgs args) {
  WarpTrace<cfg::kTraceOffset, cfg::kTraceExchangeBytes, cfg::kTraceWarps> trace;
  await_previous_kernel();  // the dispatch of this exchange
  trace.awaited();
  release_next_kernel();    // the next dispatch may become resident and wait
  const uint32_t generation = started_generation(args.common);
  trace.open(args.common.workspace, generation);
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
    trace.first(kTraceReplySeen);
    const uint8_t* const replies = inbox + token * cfg::kReplyRowBytes;
    for (int piece_index = 0; piece_index < cfg::kPieces; ++piece_index) {
      const int first = piece_index * 32 * cfg::kLaneVectors + lane_index();
      Piece<cfg::kLaneVectors> sum{};
      if (arrived) {
        sum =
            sum_replies_piece<cfg::kRowVectors, cfg::kLaneVectors, cfg::kRowsInFlight, false>(
                replies, cfg::kRepliesSlotBytes, from, first);
      }
      store_piece<cfg::kRowVectors>(to, first, sum);
    }
  }
  trace.mark(kTraceSummed);
  mark_finished(args.common, generation);
  trace.mark(kTraceEnd);
}
