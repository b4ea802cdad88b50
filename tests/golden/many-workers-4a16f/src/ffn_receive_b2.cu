// afdep: many-workers-4a16f | ffn | receive | bucket 2 | flag_in_data
// Ranks the ids of all sources, then expands each arriving row into the rows of the local experts
// that it chose. Waits for packets only; each carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 2;                   // tokens of one source at most
constexpr int kSources = 4;                  // attention ranks
constexpr int kUnits = 8;                    // 4 sources x 2 tokens
constexpr int kTopK = 8;                     // choices of a token
constexpr int kLocalExperts = 16;            // 256 experts over 16 workers
constexpr int kAlignment = 1;                // rows; an expert starts at a multiple
constexpr int kThreads = 320;                // 10 warps
constexpr int kBoundThreads = 384;           // launched with 320; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;              // leaves 80 registers a thread
constexpr int kGroupThreads = 320;           // 10 warps take a row
constexpr int64_t kRowBytes = 14336;         // 7168 x bf16
constexpr int kRowWords = 3584;              // two BF16 elements a word
constexpr int kRunWords = 4;                 // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kWarps = 10;                   // a CTA
constexpr int kOwnUnits = 1;                 // 8 units over 8 CTAs
constexpr int kTableBatch = 1;               // table packets of a lane in flight, of 32 in all
constexpr int64_t kSharedBytes = 272;        // the rank table
constexpr int64_t kTableOffset = 0;          // region table of this rank's window
constexpr int64_t kTableHalfBytes = 32768;   // by generation parity
constexpr int64_t kTableSourceBytes = 8192;  // 128 items of 64 bytes
constexpr int64_t kRowsOffset = 65536;       // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 153600;   // by generation parity
constexpr int64_t kRowsSourceBytes = 38400;  // 2 items of 19136 bytes
constexpr int64_t kInboxRowBytes = 19136;    // 1196 packets at most
constexpr int64_t kUnitRowsOffset = 0;       // region unit_rows of the workspace
constexpr int64_t kUnitSlotsOffset = 65536;  // region unit_slots of the workspace
}  // namespace cfg

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_many_workers_4a16f_receive_b2(const __grid_constant__ ReceiveArgs args) {
  Ranks& ranks = shared_memory<Ranks>();
  clear<cfg::kThreads>(ranks);
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  const int first_expert = static_cast<int>(args.common.index) * cfg::kLocalExperts;
  const int first_unit = block_index() * cfg::kOwnUnits;
  // Every block counts the whole table, so that no block waits for another; it remembers the
  // choices of its own units.
  const uint8_t* const table = args.common.window + cfg::kTableOffset + half * cfg::kTableHalfBytes;
  read_table<cfg::kSources, cfg::kBucket, cfg::kTopK, cfg::kThreads, cfg::kTableBatch>(
      args.common, table, cfg::kTableSourceBytes, generation,
      [&](int unit, int choice, uint32_t id, uint32_t weight) {
        count_choice(ranks, first_expert, first_unit, unit, choice, id, weight);
      });
  sync_block();
  // The rows left their sources with the table, so a first look at this group's row travels while
  // the ids are ranked.
  const int own = thread_index() / cfg::kGroupThreads;
  const int share = thread_index() % cfg::kGroupThreads;
  const int unit = first_unit + own;
  const int source = unit / cfg::kBucket;
  const int token = unit % cfg::kBucket;
  const uint8_t* const from = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes +
                              source * cfg::kRowsSourceBytes + token * cfg::kInboxRowBytes;
  ShareLook<cfg::kRunWords> look{};
  if (own < cfg::kOwnUnits && unit < cfg::kUnits) {
    look = look_at_share<cfg::kRowWords, cfg::kRunWords>(from, share);
  }
  if (warp_index() == 0) place_experts<cfg::kAlignment>(ranks);
  if (warp_index() == cfg::kWarps - 1) rank_own(ranks, first_expert);
  sync_block();

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(ranks, args.ends, args.counts);

  // One unit a group of warps.
  if (own < cfg::kOwnUnits && unit < cfg::kUnits) {
    const int lane_row = row_of(ranks, own, first_expert);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (share < 32) {
      if (lane_index() < cfg::kTopK) {
        store_word(args.common.workspace + cfg::kUnitRowsOffset +
                       (static_cast<int64_t>(unit) * cfg::kTopK + lane_index()) * 4,
                   static_cast<uint32_t>(lane_row));
        if (lane_row != kNoRow) {
          store_word(&args.row_weights[lane_row], ranks.weight[own * cfg::kTopK + lane_index()]);
        }
      }
      const Destinations replying = destinations<cfg::kLocalExperts>(expert_of(ranks, own));
      if (lane_index() == 0) {
        store_word(args.common.workspace + cfg::kUnitSlotsOffset + static_cast<int64_t>(unit) * 4,
                   static_cast<uint32_t>(replying.before(static_cast<int>(args.common.index))));
      }
    }
    if (chosen != 0) {
      // Published by dispatch of `source`.
      const Awaited awaited{kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)};
      const auto part =
          finish_share<cfg::kRowWords>(args.common, look, from, share, generation, awaited);
      sync_warp();  // the lanes' waits end apart; they expand together
      for (uint32_t left = chosen; left != 0; left &= left - 1) {
        const int64_t to =
            static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
        store_share<cfg::kRowWords>(out_rows + to * cfg::kRowBytes, share, part);
      }
    }
  }
  mark_started(args.common, generation);
}
