// afdep: one-worker-3a1f | ffn | receive | bucket 512 | chunked
// Ranks the ids of all sources, then expands each row into the rows of the local experts that it
// chose, once its chunk's flag says that it is there.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 512;                   // tokens of one source at most
constexpr int kSources = 3;                    // attention ranks
constexpr int kUnits = 1536;                   // 3 sources x 512 tokens
constexpr int kTopK = 8;                       // choices of a token
constexpr int kLocalExperts = 128;             // 128 experts over 1 workers
constexpr int kAlignment = 1;                  // rows; an expert starts at a multiple
constexpr int kThreads = 512;                  // 16 warps
constexpr int kBoundThreads = 512;             // 16 warps
constexpr int kBlocksPerSm = 2;                // leaves 64 registers a thread
constexpr int kRowVectors = 256;               // 16-byte vectors of a row
constexpr int kLaneVectors = 4;                // of one row, in flight together
constexpr int kPieces = 2;                     // rounds of kLaneVectors that a row takes
constexpr int64_t kRowBytes = 4096;            // 2048 x bf16
constexpr int kChunkRows = 1;                  // rows under one release flag
constexpr int kWarps = 16;                     // a CTA
constexpr int kOwnUnits = 64;                  // 1536 units over 24 CTAs
constexpr int kTableBatch = 4;                 // table packets of a lane in flight, of 6144 in all
constexpr int64_t kSharedBytes = 6656;         // the rank table
constexpr int64_t kTableOffset = 0;            // region table of this rank's window
constexpr int64_t kTableHalfBytes = 98304;     // by generation parity
constexpr int64_t kTableSourceBytes = 32768;   // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 460800;        // region rows of this rank's window
constexpr int64_t kRowsHalfBytes = 25165824;   // by generation parity
constexpr int64_t kRowsSourceBytes = 8388608;  // 2048 items of 4096 bytes
constexpr int64_t kInboxRowBytes = 4096;       // a raw row
constexpr int64_t kFlagsOffset = 52022784;     // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 24576;     // by generation parity
constexpr int64_t kFlagsSourceBytes = 8192;    // 2048 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;         // region unit_rows of the workspace
}  // namespace cfg

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_one_worker_3a1f_receive_b512(const __grid_constant__ ReceiveArgs args) {
  Ranks& ranks = shared_memory<Ranks>();
  clear<cfg::kThreads>(ranks);
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  const int first_unit = block_index() * cfg::kOwnUnits;
  const int first_expert = static_cast<int>(args.common.index) * cfg::kLocalExperts;
  // Every block counts the whole table, so that no block waits for another; it remembers the
  // choices of its own units.
  const uint8_t* const table = args.common.window + cfg::kTableOffset + half * cfg::kTableHalfBytes;
  read_table<cfg::kSources, cfg::kBucket, cfg::kTopK, cfg::kThreads, cfg::kTableBatch>(
      args.common, table, cfg::kTableSourceBytes, generation,
      [&](int unit, int choice, uint32_t id, uint32_t weight) {
        count_choice(ranks, first_expert, first_unit, unit, choice, id, weight);
      });
  sync_block();
  if (warp_index() == 0) place_experts<cfg::kAlignment>(ranks);
  if (warp_index() == cfg::kWarps - 1) rank_own(ranks, first_expert);
  sync_block();

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(ranks, args.ends, args.counts);

  const uint8_t* const inbox = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes;
  const uint8_t* const flags = args.common.window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes;
  #pragma unroll 1
  for (int own = warp_index(); own < cfg::kOwnUnits; own += cfg::kWarps) {
    const int unit = first_unit + own;
    if (unit >= cfg::kUnits) continue;
    const int source = unit / cfg::kBucket;
    const int token = unit % cfg::kBucket;
    const int lane_row = row_of(ranks, own, first_expert);
    if (lane_index() < cfg::kTopK) {
      store_word(args.common.workspace + cfg::kUnitRowsOffset +
                     (static_cast<int64_t>(unit) * cfg::kTopK + lane_index()) * 4,
                 static_cast<uint32_t>(lane_row));
    }
    const uint32_t row_weight = weight_of(ranks, own);
    if (lane_row != kNoRow) store_word(&args.row_weights[lane_row], row_weight);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (chosen == 0) continue;

    // Published by dispatch of `source`, after the rows of the chunk.
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
  mark_started(args.common, generation);
}
