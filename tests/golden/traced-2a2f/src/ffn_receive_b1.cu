// afdep: traced-2a2f | ffn | receive | bucket 1 | flag_in_data
// Ranks the ids of all sources, then expands each arriving row into the rows of the local experts
// that it chose. Waits for packets only; each carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"
#include "afdep/trace.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1;                       // tokens of one source at most
constexpr int kSources = 2;                      // attention ranks
constexpr int kUnits = 2;                        // 2 sources x 1 tokens
constexpr int kTopK = 8;                         // choices of a token
constexpr int kLocalExperts = 64;                // 128 experts over 2 workers
constexpr int kAlignment = 1;                    // rows; an expert starts at a multiple
constexpr int kThreads = 352;                    // 11 warps
constexpr int kBoundThreads = 384;               // launched with 352; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                  // leaves 80 registers a thread
constexpr int kGroupThreads = 352;               // 11 warps take a row
constexpr int64_t kRowBytes = 4096;              // 2048 x bf16
constexpr int kRowWords = 1024;                  // two BF16 elements a word
constexpr int kRunWords = 1;                     // a lane's part of a row is 3 words: one packet
constexpr int kWarps = 11;                       // a CTA
constexpr int kOwnUnits = 1;                     // 2 units over 2 CTAs
constexpr int kTableBatch = 1;                   // table packets of a lane in flight, of 8 in all
constexpr int64_t kSharedBytes = 848;            // the rank table
constexpr int64_t kTableOffset = 0;              // region table of this rank's window
constexpr int64_t kTableHalfBytes = 65536;       // by generation parity
constexpr int64_t kTableSourceBytes = 32768;     // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 131072;          // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 11264;        // by generation parity
constexpr int64_t kRowsSourceBytes = 5632;       // 1 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;         // 344 packets at most
constexpr int64_t kUnitRowsOffset = 0;           // region unit_rows of the workspace
constexpr int64_t kTraceOffset = 131072;         // region trace of the workspace
constexpr int64_t kTraceExchangeBytes = 393216;  // the last 4 are kept
constexpr int kTraceWarps = 16;                  // places a block, the same in every kernel of the role
}  // namespace cfg

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_traced_2a2f_receive_b1(const __grid_constant__ ReceiveArgs args) {
  WarpTrace<cfg::kTraceOffset, cfg::kTraceExchangeBytes, cfg::kTraceWarps> trace;
  Ranks& ranks = shared_memory<Ranks>();
  clear<cfg::kThreads>(ranks);
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  trace.awaited();
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  trace.open(args.common.workspace, generation);
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
  trace.mark(kTraceTableSeen);
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
  trace.mark(kTraceRanked);

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
    }
    if (chosen != 0) {
      // Published by dispatch of `source`.
      const Awaited awaited{kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)};
      const auto part =
          finish_share<cfg::kRowWords>(args.common, look, from, share, generation, awaited);
      sync_warp();  // the lanes' waits end apart; they expand together
      trace.mark(kTraceFirstRow);
      for (uint32_t left = chosen; left != 0; left &= left - 1) {
        const int64_t to =
            static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
        store_share<cfg::kRowWords>(out_rows + to * cfg::kRowBytes, share, part);
      }
    }
  }
  trace.mark(kTraceRowsWritten);
  mark_started(args.common, generation);
  trace.mark(kTraceEnd);
}
