// afdep: all-reverted-2a2f | ffn | reply | bucket 1 | flag_in_data
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1;                      // tokens of one source at most
constexpr int kSources = 2;                     // attention ranks
constexpr int kUnits = 2;                       // 2 sources x 1 tokens
constexpr int kTopK = 8;                        // choices of a token
constexpr int kThreads = 352;                   // 11 warps
constexpr int kBoundThreads = 384;              // launched with 352; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                 // leaves 80 registers a thread
constexpr int kGroupThreads = 352;              // 11 warps take a row
constexpr int kGroups = 1;                      // rows in flight in a CTA
constexpr int kGridGroups = 2;                  // 2 CTAs
constexpr int kRowLots = 1;                     // a group takes a row
constexpr int kRowWords = 1024;                 // two BF16 elements a word
constexpr int kRunWords = 1;                    // a lane's part of a row is 3 words: one packet
constexpr int kRowsInFlight = 8;                // of a token, in a lane's registers
constexpr int64_t kRepliesOffset = 1417472;     // worker 0's block of region reply_packets of every source's window
constexpr int64_t kRepliesHalfBytes = 2818048;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 704512;   // 128 items of 5504 bytes
constexpr int64_t kReplyRowBytes = 5504;        // 344 packets at most
constexpr int64_t kDoneOffset = 8192;           // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
constexpr int kRanks = 4;                       // numbered attention first
constexpr int kOwnFirst = 2;                    // number of this role's first rank
constexpr int kPeerFirst = 0;                   // number of the other role's
constexpr int64_t kEntryOffset = 4096;          // region entry_combine of every rank's window
constexpr int64_t kEntryRankBytes = 256;        // a word a rank
constexpr int64_t kEntryGateOffset = 45088;     // region gates of the workspace
constexpr int64_t kExitOffset = 5120;           // region exit_combine of every rank's window
constexpr int64_t kExitRankBytes = 256;         // a word a rank
constexpr int64_t kBlockGatesOffset = 45312;    // region block_gates of the workspace
constexpr int kGridBlocks = 2;                  // CTAs
constexpr int64_t kNoRowsOffset = 6144;         // region no_rows_combine of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;      // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;       // 1 items of 16 bytes
constexpr int kNoRowsPackets = 1;               // nothing to count
constexpr int kNoRowsToFirst = 2;               // rank number that is told first
constexpr int kNoRowsToEnd = 4;                 // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;             // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;               // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_reply_b1(const __grid_constant__ ReplyArgs args) {
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kSecondPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);
  // A group of warps takes a unit, or a lot of one, then another whose rows it already knows.
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread = thread_index() % cfg::kGroupThreads;
  const uint8_t* const unit_rows = args.common.workspace + cfg::kUnitRowsOffset;
  constexpr int kLots = cfg::kUnits * cfg::kRowLots;
  int lot = group * (cfg::kGridGroups / cfg::kGroups) + block_index();
  int lane_row =
      lot < kLots ? load_unit_row<cfg::kTopK>(unit_rows, lot / cfg::kRowLots) : kNoRow;
  #pragma unroll 1
  while (lot < kLots) {
    const int next = lot + cfg::kGridGroups;
    const int next_lane_row =
        next < kLots ? load_unit_row<cfg::kTopK>(unit_rows, next / cfg::kRowLots) : kNoRow;
    const uint32_t chosen = lanes_with_row(lane_row);
    if (chosen != 0) {
      const int unit = lot / cfg::kRowLots;
      const int share = lot % cfg::kRowLots * cfg::kGroupThreads + group_thread;
      const int source = unit / cfg::kBucket;
      const int token = unit % cfg::kBucket;
      const uint32_t slot = args.common.index;
      uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                          half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                          token * cfg::kReplyRowBytes;
      const auto part = sum_rows_share<cfg::kRowsInFlight, cfg::kRowWords, cfg::kRunWords>(
          rows, lane_row, chosen, share);
      store_packets<cfg::kRowWords>(to, share, part, generation);  // awaited by collect
    }
    lot = next;
    lane_row = next_lane_row;
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kSecondPart);
  }
  // Exit barrier: this rank ends when every rank has sent all.
  leave_barrier<Group, cfg::kGridBlocks>(args.common, cfg::kExitOffset, cfg::kExitRankBytes,
                                         cfg::kBlockGatesOffset, generation, kSecondPart);
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  if (block_index() == 0) {
    #pragma unroll 1
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  mark_finished(args.common, generation);
}
