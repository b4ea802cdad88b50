// afdep: three-workers-1a3f | ffn | receive | bucket 8 | flag_in_data
// Ranks the ids of all sources, then expands each arriving row into the rows of the local experts
// that it chose. Waits for packets only; each carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"
#include "afdep/unit.cuh"
#include "afdep/warp_rank.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 8;                     // tokens of one source at most
constexpr int kSources = 1;                    // attention ranks
constexpr int kUnits = 8;                      // 1 sources x 8 tokens
constexpr int kTopK = 8;                       // choices of a token
constexpr int kLocalExperts = 32;              // 96 experts over 3 workers
constexpr int kBoundThreads = 448;             // launched with 192; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                // leaves 72 registers a thread
constexpr int kWarps = 6;                      // a CTA
constexpr int kRowWarps = 12;                  // take a row, in one CTA or in several
constexpr int64_t kRowBytes = 4096;            // 2048 x bf16
constexpr int kRowWords = 1024;                // two BF16 elements a word
constexpr int kRunWords = 1;                   // a lane's part of a row is 3 words: one packet
constexpr int kRowShares = 342;                // parts of 12 bytes
constexpr int kEndsBlock = 16;                 // publishes ends and counts, and no more
constexpr int64_t kTableOffset = 0;            // region table of this rank's window
constexpr int64_t kTableHalfBytes = 32768;     // by generation parity
constexpr int64_t kTableSourceBytes = 32768;   // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 65536;         // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 44032;      // by generation parity
constexpr int64_t kRowsSourceBytes = 44032;    // 8 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;       // 344 packets at most
constexpr int64_t kUnitPacketsOffset = 16384;  // region unit_packets of the workspace
constexpr int kUnitPackets = 3;                // of a unit: its rows, and its reply slot
constexpr int64_t kUnitBytes = 48;             // 16 a packet
}  // namespace cfg

// What reply reads of a unit: its rows, and its slot where replies have slots.
using Unit = UnitRows<cfg::kTopK, cfg::kUnitPackets>;
using Table = WarpTable<cfg::kSources, cfg::kBucket, cfg::kTopK, cfg::kLocalExperts>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_three_workers_1a3f_receive_b8(const __grid_constant__ ReceiveArgs args) {
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  // kRowWarps warps take a unit, a (source, token) pair; units are source-major. Every warp ranks
  // the whole table for itself, so that none waits for another.
  const int first_expert = static_cast<int>(args.common.index) * cfg::kLocalExperts;
  const int warp = block_index() * cfg::kWarps + warp_index();
  const int unit = warp / cfg::kRowWarps;
  const int share = warp % cfg::kRowWarps * 32 + lane_index();
  const int source = unit / cfg::kBucket;
  const int token = unit % cfg::kBucket;
  const uint8_t* const table = args.common.window + cfg::kTableOffset + half * cfg::kTableHalfBytes;
  const uint8_t* const from = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes +
                              source * cfg::kRowsSourceBytes + token * cfg::kInboxRowBytes;
  // Rows leave their sources with the table, so a look at the row goes with each look at the ids.
  ShareLook<cfg::kRunWords> look{};
  const auto ids = await_table_by_warp<Table, cfg::kRowWords>(
      args.common, table, cfg::kTableSourceBytes, first_expert, generation, from,
      unit < cfg::kUnits ? share : cfg::kRowShares, look);
  const auto places = places_in(ids, unit);
  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  const bool last_warp = warp % cfg::kRowWarps == cfg::kRowWarps - 1;
  if (unit < cfg::kUnits) {
    if (last_warp) {
      const int lane_row = places.lane_row;
      const uint32_t chosen = lanes_with_row(lane_row);
      store_unit<Unit>(args.common.workspace + cfg::kUnitPacketsOffset + unit * cfg::kUnitBytes, lane_row,
                       chosen, 0, generation);
      const uint32_t row_weight = lane_weight_of(ids, unit);
      if (lane_row != kNoRow) store_word(&args.row_weights[lane_row], row_weight);
    }
    if (places.any()) {
      // Published by dispatch of `source`.
      const Awaited awaited{kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)};
      const auto part =
          finish_share<cfg::kRowWords>(args.common, look, from, share, generation, awaited);
      sync_warp();  // the lanes' waits end apart; they expand together
      uint8_t* const lane_rows =
          kept(out_rows + RowShares<cfg::kRowWords, cfg::kRunWords>::lane_byte(share));
      #pragma unroll
      for (int k = 0; k < cfg::kTopK; ++k) {
        if (places.row[k] == kNoRow) continue;
        store_share_at<cfg::kRowWords>(lane_rows + places.row[k] * cfg::kRowBytes, share, part);
      }
    }
  }
  if (block_index() == cfg::kEndsBlock) {
    publish_ends_by_warps<cfg::kWarps>(ids, warp_index(), args.ends, args.counts);
  }
  mark_started(args.common, generation);
}
