// afdep: one-worker-3a1f | ffn | receive | bucket 8 | flag_in_data
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
constexpr int kBucket = 8;                      // tokens of one source at most
constexpr int kSources = 3;                     // attention ranks
constexpr int kUnits = 24;                      // 3 sources x 8 tokens
constexpr int kTopK = 8;                        // choices of a token
constexpr int kLocalExperts = 128;              // 128 experts over 1 workers
constexpr int kAlignment = 1;                   // rows; an expert starts at a multiple
constexpr int kThreads = 352;                   // 11 warps
constexpr int kBoundThreads = 384;              // launched with 352; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                 // leaves 80 registers a thread
constexpr int kWarps = 11;                      // a CTA
constexpr int kRowWarps = 11;                   // take a row, in one CTA or in several
constexpr int64_t kRowBytes = 4096;             // 2048 x bf16
constexpr int kRowWords = 1024;                 // two BF16 elements a word
constexpr int kRunWords = 1;                    // a lane's part of a row is 3 words: one packet
constexpr int kOwnUnits = 1;                    // 24 units over 24 CTAs
constexpr int kTableBatch = 1;                  // table packets of a lane in flight, of 96 in all
constexpr int64_t kSharedBytes = 1616;          // the rank table
constexpr int64_t kTableOffset = 0;             // region table of this rank's window
constexpr int64_t kTableHalfBytes = 98304;      // by generation parity
constexpr int64_t kTableSourceBytes = 32768;    // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 196608;         // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 132096;      // by generation parity
constexpr int64_t kRowsSourceBytes = 44032;     // 8 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;        // 344 packets at most
constexpr int64_t kUnitPacketsOffset = 196608;  // region unit_packets of the workspace
constexpr int kUnitPackets = 3;                 // of a unit: its rows, and its reply slot
constexpr int64_t kUnitBytes = 48;              // 16 a packet
}  // namespace cfg

// What reply reads of a unit: its rows, and its slot where replies have slots.
using Unit = UnitRows<cfg::kTopK, cfg::kUnitPackets>;
// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_one_worker_3a1f_receive_b8(const __grid_constant__ ReceiveArgs args) {
  Ranks& ranks = shared_memory<Ranks>();
  clear<cfg::kThreads>(ranks);
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  // kRowWarps warps take a unit.
  const int warp = block_index() * cfg::kWarps + warp_index();
  const int first_unit = block_index() * cfg::kWarps / cfg::kRowWarps;
  const int unit = warp / cfg::kRowWarps;
  const int own = unit - first_unit;
  const int share = warp % cfg::kRowWarps * 32 + lane_index();
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
  // A unit's ids say whether its row comes, so its warps wait for it while others rank.
  const int source = unit / cfg::kBucket;
  const int token = unit % cfg::kBucket;
  const uint8_t* const from = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes +
                              source * cfg::kRowsSourceBytes + token * cfg::kInboxRowBytes;
  const bool comes = unit < cfg::kUnits && has_local_choice(ranks, own, first_expert);
  ShareLook<cfg::kRunWords> look{};
  if (comes) look = look_at_share<cfg::kRowWords, cfg::kRunWords>(from, share);
  if (warp_index() == 0) place_experts<cfg::kAlignment>(ranks);
  if (warp_index() == cfg::kWarps - 1) rank_own(ranks, first_expert);
  Share<cfg::kRunWords> part{};
  if (comes) {
    // Published by dispatch of `source`.
    const Awaited awaited{kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)};
    part = finish_share<cfg::kRowWords>(args.common, look, from, share, generation, awaited);
  }
  sync_block();

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(ranks, args.ends, args.counts);
  if (unit < cfg::kUnits) {
    const int lane_row = row_of(ranks, own, first_expert);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (warp % cfg::kRowWarps == cfg::kRowWarps - 1) {
      store_unit<Unit>(args.common.workspace + cfg::kUnitPacketsOffset + unit * cfg::kUnitBytes, lane_row,
                       chosen, 0, generation);
      const uint32_t row_weight = weight_of(ranks, own);
      if (lane_row != kNoRow) store_word(&args.row_weights[lane_row], row_weight);
    }
    if (comes) {
      const auto places = places_of<cfg::kTopK>(lane_row);
      uint8_t* const lane_rows =
          kept(out_rows + RowShares<cfg::kRowWords, cfg::kRunWords>::lane_byte(share));
      #pragma unroll
      for (int k = 0; k < cfg::kTopK; ++k) {
        if (places.row[k] == kNoRow) continue;
        store_share_at<cfg::kRowWords>(lane_rows + places.row[k] * cfg::kRowBytes, share, part);
      }
    }
  }
  mark_started(args.common, generation);
}
