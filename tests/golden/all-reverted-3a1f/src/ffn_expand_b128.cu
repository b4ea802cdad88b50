// afdep: all-reverted-3a1f | ffn | expand | bucket 128 | chunked
// Expands each row of the inbox, for whose flag receive has waited, into the rows of the local
// experts that it chose.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                   // tokens of one source at most
constexpr int kUnits = 384;                    // 3 sources x 128 tokens
constexpr int kTopK = 8;                       // choices of a token
constexpr int kBoundThreads = 512;             // 16 warps
constexpr int kBlocksPerSm = 2;                // leaves 64 registers a thread
constexpr int kWarps = 16;                     // a CTA
constexpr int kGridWarps = 384;                // 24 CTAs
constexpr int kRowVectors = 256;               // 16-byte vectors of a row
constexpr int kLaneVectors = 4;                // of one row, in flight together
constexpr int kPieces = 2;                     // rounds of kLaneVectors that a row takes
constexpr int64_t kRowBytes = 4096;            // 2048 x bf16
constexpr int kChunkRows = 1;                  // rows under one release flag
constexpr int64_t kRowsOffset = 428032;        // region rows of this rank's window
constexpr int64_t kRowsHalfBytes = 4194304;    // by generation parity
constexpr int64_t kRowsSourceBytes = 1048576;  // 256 items of 4096 bytes
constexpr int64_t kInboxRowBytes = 4096;       // a raw row
constexpr int64_t kFlagsOffset = 9080832;      // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 4096;      // by generation parity
constexpr int64_t kFlagsSourceBytes = 1024;    // 256 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;         // region unit_rows of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_expand_b128(const __grid_constant__ ReceiveArgs args) {
  await_previous_kernel();  // the receive of this exchange
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const uint32_t half = half_of(generation);
  const uint8_t* const inbox = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes;
  const uint8_t* const flags = args.common.window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes;
  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
#pragma unroll 1
  for (int unit = block_index() * cfg::kWarps + warp_index(); unit < cfg::kUnits;
       unit += cfg::kGridWarps) {
    const int source = unit / cfg::kBucket;
    const int token = unit % cfg::kBucket;
    const int lane_row =
        load_unit_row<cfg::kTopK>(args.common.workspace + cfg::kUnitRowsOffset, unit);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (chosen == 0) continue;
    // Set already, unless receive gave up.
    const uint8_t* const flag =
        flags + source * cfg::kFlagsSourceBytes + token / cfg::kChunkRows * 4;
    if (!await_flag_by_warp(
            args.common, flag, generation,
            {kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)})) {
      continue;
    }
    const uint8_t* const from =
        inbox + source * cfg::kRowsSourceBytes + token * cfg::kInboxRowBytes;
    for (int piece_index = 0; piece_index < cfg::kPieces; ++piece_index) {
      const int first = piece_index * 32 * cfg::kLaneVectors + lane_index();
      const auto piece = load_piece<cfg::kRowVectors, cfg::kLaneVectors>(from, first);
      for (uint32_t left = chosen; left != 0; left &= left - 1) {
        const int64_t to =
            static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
        store_piece<cfg::kRowVectors>(out_rows + to * cfg::kRowBytes, first, piece);
      }
    }
  }
}
