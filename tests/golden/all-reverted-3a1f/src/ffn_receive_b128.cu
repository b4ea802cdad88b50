// afdep: all-reverted-3a1f | ffn | receive | bucket 128 | chunked
// Ranks the ids of all sources and waits for the flags of their rows, which expand takes out of the
// inbox.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                 // tokens of one source at most
constexpr int kSources = 3;                  // attention ranks
constexpr int kUnits = 384;                  // 3 sources x 128 tokens
constexpr int kTopK = 8;                     // choices of a token
constexpr int kLocalExperts = 128;           // 128 experts over 1 workers
constexpr int kAlignment = 16;               // rows; an expert starts at a multiple
constexpr int kThreads = 512;                // 16 warps
constexpr int kBoundThreads = 512;           // 16 warps
constexpr int kBlocksPerSm = 2;              // leaves 64 registers a thread
constexpr int kChunkRows = 1;                // rows under one release flag
constexpr int kRowWords = 1024;              // two BF16 elements a word
constexpr int kWarps = 16;                   // a CTA
constexpr int kBlocks = 24;                  // CTAs
constexpr int kOwnUnits = 16;                // 384 units over 24 CTAs
constexpr int kTableBatch = 3;               // table packets of a lane in flight, of 1536 in all
constexpr int64_t kSharedBytes = 2816;       // the rank table
constexpr int64_t kTableOffset = 10240;      // region table of this rank's window
constexpr int64_t kTableHalfBytes = 32768;   // by generation parity
constexpr int64_t kTableSourceBytes = 8192;  // 128 items of 64 bytes
constexpr int64_t kFlagsOffset = 9080832;    // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 4096;    // by generation parity
constexpr int64_t kFlagsSourceBytes = 1024;  // 256 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;       // region unit_rows of the workspace
constexpr int kRanks = 4;                    // numbered attention first
constexpr int kOwnFirst = 3;                 // number of this role's first rank
constexpr int kPeerFirst = 0;                // number of the other role's
constexpr int64_t kEntryOffset = 0;          // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;     // a word a rank
constexpr int64_t kEntryGateOffset = 25856;  // region gates of the workspace
constexpr int64_t kExitOffset = 1024;        // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;      // a word a rank
constexpr int64_t kNoRowsOffset = 2048;      // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 2048;   // by generation parity
constexpr int64_t kNoRowsRankBytes = 512;    // 22 items of 16 bytes
constexpr int kNoRowsPackets = 22;           // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;            // rank number that is told first
constexpr int kNoRowsToEnd = 4;              // this rank has no rows
constexpr int kNoRowsFromFirst = 3;          // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;            // rows come from the other role alone
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_receive_b128(const __grid_constant__ ReceiveArgs args) {
  Ranks& ranks = shared_memory<Ranks>();
  clear<cfg::kThreads>(ranks);
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kFirstPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
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
  zero_padding<cfg::kThreads, cfg::kBlocks, cfg::kAlignment, cfg::kRowWords>(ranks, out_rows,
                                                                             args.row_weights);
  // Exit barrier: this kernel ends, and its epilogue reads rows, when every rank has sent all.
  end_behind_barrier<Group>(args.common, cfg::kExitOffset, cfg::kExitRankBytes, generation, kFirstPart);

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
    await_flag_by_warp(args.common, flag, generation,
                       {kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)});
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  mark_started(args.common, generation);
}
