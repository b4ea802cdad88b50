// afdep: top-one-2a4f | ffn | reply | bucket 1024 | bulk
// Sends each token's one row back to its source.
// Rows are raw bytes; one release flag a source and chunk of rows says that they are there.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1024;                    // tokens of one source at most
constexpr int kSources = 2;                      // attention ranks
constexpr int kTopK = 1;                         // choices of a token
constexpr int kThreads = 384;                    // 12 warps
constexpr int kBoundThreads = 512;               // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                  // leaves 128 registers a thread
constexpr int kWarps = 12;                       // a CTA
constexpr int kGridWarps = 192;                  // 16 CTAs
constexpr int kRowVectors = 640;                 // 16-byte vectors of a row
constexpr int kLaneVectors = 8;                  // of one row, in flight together
constexpr int kPieces = 3;                       // rounds of kLaneVectors that a row takes
constexpr int kChunkRows = 6;                    // rows under one release flag
constexpr int kSourceChunks = 171;               // chunks of one source
constexpr int64_t kRowBytes = 10240;             // 5120 x bf16
constexpr int64_t kRepliesOffset = 1753344;      // region replies of every source's window
constexpr int64_t kRepliesHalfBytes = 10485760;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 10485760;  // 1024 items of 10240 bytes
constexpr int64_t kReplyRowBytes = 10240;        // a raw row
constexpr int64_t kFlagsOffset = 22724864;       // region reply_flags of every source's window
constexpr int64_t kFlagsHalfBytes = 4096;        // by generation parity
constexpr int64_t kFlagsWorkerBytes = 1024;      // 256 items of 4 bytes
constexpr int64_t kDoneOffset = 0;               // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;           // region unit_rows of the workspace
constexpr int64_t kUnitSlotsOffset = 10240;      // region unit_slots of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_top_one_2a4f_reply_b1024(const __grid_constant__ ReplyArgs args) {
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
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
      const uint32_t slot =
          load_word(args.common.workspace + cfg::kUnitSlotsOffset + static_cast<int64_t>(unit) * 4);
      uint8_t* const to = window + cfg::kRepliesOffset + half * cfg::kRepliesHalfBytes +
                          slot * cfg::kRepliesSlotBytes + token * cfg::kReplyRowBytes;
      for (int piece_index = 0; piece_index < cfg::kPieces; ++piece_index) {
        const int first = piece_index * 32 * cfg::kLaneVectors + lane_index();
        const int64_t from = static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), 0));
        const auto reply =
            load_piece<cfg::kRowVectors, cfg::kLaneVectors>(rows + from * cfg::kRowBytes, first);
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
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  if (block_index() == 0) {
    #pragma unroll 1
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  if (block_index() == 0 && thread_index() == 0) {
    store_relaxed(&args.common.control->units_taken, 0);  // receive, which takes them, has ended
  }
  mark_finished(args.common, generation);
}
