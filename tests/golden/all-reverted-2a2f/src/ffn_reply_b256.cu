// afdep: all-reverted-2a2f | ffn | reply | bucket 256 | chunked
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// Rows are raw bytes; one release flag a source and chunk of rows says that they are there.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 256;                    // tokens of one source at most
constexpr int kSources = 2;                     // attention ranks
constexpr int kTopK = 8;                        // choices of a token
constexpr int kThreads = 512;                   // 16 warps
constexpr int kBoundThreads = 512;              // 16 warps
constexpr int kBlocksPerSm = 2;                 // leaves 64 registers a thread
constexpr int kWarps = 16;                      // a CTA
constexpr int kGridWarps = 384;                 // 24 CTAs
constexpr int kRowVectors = 256;                // 16-byte vectors of a row
constexpr int kLaneVectors = 2;                 // of one row, in flight together
constexpr int kPieces = 4;                      // rounds of kLaneVectors that a row takes
constexpr int kRowsInFlight = 3;                // of a token, in a lane's registers
constexpr int kChunkRows = 1;                   // rows under one release flag
constexpr int kSourceChunks = 256;              // chunks of one source
constexpr int64_t kRepliesOffset = 9838848;     // worker 0's block of region replies of every source's window
constexpr int64_t kRepliesHalfBytes = 8388608;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 2097152;  // 512 items of 4096 bytes
constexpr int64_t kReplyRowBytes = 4096;        // a raw row
constexpr int64_t kFlagsOffset = 22425856;      // worker 0's block of region reply_flags of every source's window
constexpr int64_t kFlagsHalfBytes = 8192;       // by generation parity
constexpr int64_t kFlagsWorkerBytes = 2048;     // 512 items of 4 bytes
constexpr int64_t kDoneOffset = 8192;           // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
constexpr int kRanks = 4;                       // numbered attention first
constexpr int kOwnFirst = 2;                    // number of this role's first rank
constexpr int kPeerFirst = 0;                   // number of the other role's
constexpr int64_t kEntryOffset = 4096;          // region entry_combine of every rank's window
constexpr int64_t kEntryRankBytes = 256;        // a word a rank
constexpr int64_t kEntryGateOffset = 45088;     // region gates of the workspace
constexpr int64_t kExitOffset = 5120;           // region exit_combine of every rank's window
constexpr int64_t kExitRankBytes = 256;         // a word a rank
constexpr int64_t kBlockGatesOffset = 45312;    // region block_gates of the workspace
constexpr int kGridBlocks = 24;                 // CTAs
constexpr int64_t kNoRowsOffset = 6144;         // region no_rows_combine of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;      // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;       // 1 items of 16 bytes
constexpr int kNoRowsPackets = 1;               // nothing to count
constexpr int kNoRowsToFirst = 2;               // rank number that is told first
constexpr int kNoRowsToEnd = 4;                 // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;             // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;               // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_reply_b256(const __grid_constant__ ReplyArgs args) {
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kSecondPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);
#pragma unroll 1
  for (int chunk = block_index() * cfg::kWarps + warp_index();
       chunk < cfg::kSources * cfg::kSourceChunks; chunk += cfg::kGridWarps) {
    const int source = chunk / cfg::kSourceChunks;
    const int source_chunk = chunk % cfg::kSourceChunks;
    uint8_t* const window = args.common.peer[source];
    bool replied = false;
    for (int i = 0; i < cfg::kChunkRows; ++i) {
      const int token = source_chunk * cfg::kChunkRows + i;
      if (token >= cfg::kBucket) continue;
      const int unit = source * cfg::kBucket + token;
      const int lane_row =
          load_unit_row<cfg::kTopK>(args.common.workspace + cfg::kUnitRowsOffset, unit);
      const uint32_t chosen = lanes_with_row(lane_row);
      if (chosen == 0) continue;
      replied = true;
      const uint32_t slot = args.common.index;
      uint8_t* const to = window + cfg::kRepliesOffset + half * cfg::kRepliesHalfBytes +
                          slot * cfg::kRepliesSlotBytes + token * cfg::kReplyRowBytes;
      for (int piece_index = 0; piece_index < cfg::kPieces; ++piece_index) {
        const int first = piece_index * 32 * cfg::kLaneVectors + lane_index();
        const auto reply = sum_rows_piece<cfg::kRowVectors, cfg::kLaneVectors, cfg::kRowsInFlight>(
            rows, lane_row, chosen, first);
        store_piece<cfg::kRowVectors>(to, first, reply);
      }
    }
    sync_warp();  // all lanes' stores come before the release below
    if (replied && lane_index() == 0) {
      release_flag(window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes +
                       args.common.index * cfg::kFlagsWorkerBytes + source_chunk * 4,
                   generation);  // awaited by collect
    }
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kSecondPart);
  }
  // Exit barrier: this rank ends when every rank has sent all.
  leave_barrier<Group, cfg::kGridBlocks>(args.common, cfg::kExitOffset, cfg::kExitRankBytes,
                                         cfg::kBlockGatesOffset, generation, kSecondPart);
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  if (block_index() == 0) {
    #pragma unroll 1
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  mark_finished(args.common, generation);
}
