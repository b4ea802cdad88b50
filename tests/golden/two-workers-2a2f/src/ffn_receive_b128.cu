// afdep: two-workers-2a2f | ffn | receive | bucket 128 | flag_in_data
// Ranks the ids of all sources, then expands each arriving row into the rows of the local experts
// that it chose. Waits for packets only; each carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                  // tokens of one source at most
constexpr int kSources = 2;                   // attention ranks
constexpr int kUnits = 256;                   // 2 sources x 128 tokens
constexpr int kTopK = 8;                      // choices of a token
constexpr int kLocalExperts = 64;             // 128 experts over 2 workers
constexpr int kAlignment = 1;                 // rows; an expert starts at a multiple
constexpr int kThreads = 384;                 // 12 warps
constexpr int kBoundThreads = 384;            // 12 warps
constexpr int kBlocksPerSm = 2;               // leaves 80 registers a thread
constexpr int kGroupThreads = 96;             // 3 warps take a row
constexpr int kGroups = 4;                    // rows in flight in a CTA
constexpr int kRowLots = 1;                   // a group takes a row
constexpr int kWarps = 12;                    // a CTA
constexpr int64_t kRowBytes = 4096;           // 2048 x bf16
constexpr int kRowWords = 1024;               // two BF16 elements a word
constexpr int kRunWords = 4;                  // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kOwnUnits = 11;                 // 256 units over 24 CTAs
constexpr int kTableBatch = 3;                // table packets of a lane in flight, of 1024 in all
constexpr int64_t kSharedBytes = 1648;        // the rank table
constexpr int64_t kTableOffset = 0;           // region table of this rank's window
constexpr int64_t kTableHalfBytes = 65536;    // by generation parity
constexpr int64_t kTableSourceBytes = 32768;  // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 131072;       // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 1409024;   // by generation parity
constexpr int64_t kRowsSourceBytes = 704512;  // 128 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;      // 344 packets at most
constexpr int64_t kUnitRowsOffset = 0;        // region unit_rows of the workspace
}  // namespace cfg

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_two_workers_2a2f_receive_b128(const __grid_constant__ ReceiveArgs args) {
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
  // A group of warps takes a unit, or a lot of one, then another whose packets it already looks at.
  // The first look travels while the ids are ranked.
  const uint8_t* const inbox = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes;
  const auto share_of = [&](int lot) {
    return lot % cfg::kRowLots * cfg::kGroupThreads + thread_index() % cfg::kGroupThreads;
  };
  const auto packets_of = [&](int lot) {
    const int unit = first_unit + lot / cfg::kRowLots;
    return inbox + unit / cfg::kBucket * cfg::kRowsSourceBytes +
           unit % cfg::kBucket * cfg::kInboxRowBytes;
  };
  const int units_left = cfg::kUnits - first_unit;
  const int lots =
      (units_left < cfg::kOwnUnits ? units_left : cfg::kOwnUnits) * cfg::kRowLots;
  const auto row_of_lot = [&](int lot) {
    return lot < lots ? row_of(ranks, lot / cfg::kRowLots, first_expert) : kNoRow;
  };
  const auto look_at_lot = [&](int lot) {
    ShareLook<cfg::kRunWords> look{};
    if (lot < lots && has_local_choice(ranks, lot / cfg::kRowLots, first_expert)) {
      look = look_at_share<cfg::kRowWords, cfg::kRunWords>(packets_of(lot), share_of(lot));
    }
    return look;
  };
  int lot = thread_index() / cfg::kGroupThreads;
  ShareLook<cfg::kRunWords> look = look_at_lot(lot);
  if (warp_index() == 0) place_experts<cfg::kAlignment>(ranks);
  if (warp_index() == cfg::kWarps - 1) rank_own(ranks, first_expert);
  sync_block();

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(ranks, args.ends, args.counts);
  int lane_row = row_of_lot(lot);
  #pragma unroll 1
  while (lot < lots) {
    const int next = lot + cfg::kGroups;
    const int next_lane_row = row_of_lot(next);
    const ShareLook<cfg::kRunWords> next_look = look_at_lot(next);
    const int own = lot / cfg::kRowLots;
    const int unit = first_unit + own;
    const int share = share_of(lot);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (share < 32) {
      if (lane_index() < cfg::kTopK) {
        store_word(args.common.workspace + cfg::kUnitRowsOffset +
                       (static_cast<int64_t>(unit) * cfg::kTopK + lane_index()) * 4,
                   static_cast<uint32_t>(lane_row));
      }
      const uint32_t row_weight = weight_of(ranks, own);
      if (lane_row != kNoRow) store_word(&args.row_weights[lane_row], row_weight);
    }
    if (chosen != 0) {
      // Published by dispatch of the unit's source.
      const Awaited awaited{kPhaseRow, static_cast<uint32_t>(unit / cfg::kBucket),
                            static_cast<uint32_t>(unit % cfg::kBucket)};
      const auto part = finish_share<cfg::kRowWords>(args.common, look, packets_of(lot), share,
                                                     generation, awaited);
      sync_warp();  // the lanes' waits end apart; they expand together
      for (uint32_t left = chosen; left != 0; left &= left - 1) {
        const int64_t to =
            static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
        store_share<cfg::kRowWords>(out_rows + to * cfg::kRowBytes, share, part);
      }
    }
    lot = next;
    lane_row = next_lane_row;
    look = next_look;
  }
  mark_started(args.common, generation);
}
