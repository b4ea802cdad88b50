// afdep: all-reverted-2a2f | ffn | receive | bucket 128 | flag_in_data
// Ranks the ids of all sources and waits for their rows, which expand takes out of the inbox.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
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
constexpr int kRowWords = 1024;               // two BF16 elements a word
constexpr int kRunWords = 4;                  // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kOwnUnits = 11;                 // 256 units over 24 CTAs
constexpr int kTableBatch = 3;                // table packets of a lane in flight, of 1024 in all
constexpr int64_t kSharedBytes = 1648;        // the rank table
constexpr int64_t kTableOffset = 8192;        // region table of this rank's window
constexpr int64_t kTableHalfBytes = 65536;    // by generation parity
constexpr int64_t kTableSourceBytes = 16384;  // 256 items of 64 bytes
constexpr int64_t kRowsOffset = 139264;       // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 2818048;   // by generation parity
constexpr int64_t kRowsSourceBytes = 704512;  // 128 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;      // 344 packets at most
constexpr int64_t kUnitRowsOffset = 0;        // region unit_rows of the workspace
constexpr int kRanks = 4;                     // numbered attention first
constexpr int kOwnFirst = 2;                  // number of this role's first rank
constexpr int kPeerFirst = 0;                 // number of the other role's
constexpr int64_t kEntryOffset = 0;           // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;      // a word a rank
constexpr int64_t kEntryGateOffset = 45056;   // region gates of the workspace
constexpr int64_t kExitOffset = 1024;         // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;       // a word a rank
constexpr int64_t kNoRowsOffset = 2048;       // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;    // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;     // 11 items of 16 bytes
constexpr int kNoRowsPackets = 11;            // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;             // rank number that is told first
constexpr int kNoRowsToEnd = 4;               // this rank has no rows
constexpr int kNoRowsFromFirst = 2;           // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;             // rows come from the other role alone
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

// Units, (source, token) pairs, are source-major; this block places the rows of kOwnUnits of them.
using Ranks = RankTable<cfg::kLocalExperts, cfg::kOwnUnits, cfg::kTopK>;
static_assert(sizeof(Ranks) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_receive_b128(const __grid_constant__ ReceiveArgs args) {
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
  if (warp_index() == 0) place_experts<cfg::kAlignment>(ranks);
  if (warp_index() == cfg::kWarps - 1) rank_own(ranks, first_expert);
  sync_block();

  if (block_index() == 0) publish_ends<cfg::kThreads>(ranks, args.ends, args.counts);
  // Exit barrier: this kernel ends, and its epilogue reads rows, when every rank has sent all.
  end_behind_barrier<Group>(args.common, cfg::kExitOffset, cfg::kExitRankBytes, generation, kFirstPart);
  ShareLook<cfg::kRunWords> look = look_at_lot(lot);
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
      finish_share<cfg::kRowWords>(args.common, look, packets_of(lot), share, generation, awaited);
    }
    lot = next;
    lane_row = next_lane_row;
    look = next_look;
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  mark_started(args.common, generation);
}
