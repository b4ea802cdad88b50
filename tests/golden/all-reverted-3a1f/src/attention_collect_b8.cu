// afdep: all-reverted-3a1f | attention | collect | bucket 8 | flag_in_data
// Waits for each token's replies, which reduce sums.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 384;             // launched with 192; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                // leaves 80 registers a thread
constexpr int kGroupThreads = 192;             // 6 warps take a row's part of one CTA
constexpr int kGroups = 1;                     // rows in flight in a CTA
constexpr int kRowBlocks = 2;                  // CTAs share a row
constexpr int kRowThreads = 384;               // of a row in all of them
constexpr int kGridGroups = 8;                 // 16 CTAs
constexpr int kRowWords = 1024;                // two BF16 elements a word
constexpr int kRunWords = 1;                   // a lane's part of a row is 3 words: one packet
constexpr int kRowShares = 342;                // parts of 12 bytes
constexpr int64_t kRepliesOffset = 142592;     // worker 0's block of region reply_packets of this rank's window
constexpr int64_t kRepliesHalfBytes = 176128;  // by generation parity
constexpr int64_t kReplyRowBytes = 5504;       // 344 packets at most
constexpr int64_t kDestinationsOffset = 0;     // region destinations of the workspace
constexpr int kRanks = 4;                      // numbered attention first
constexpr int kOwnFirst = 0;                   // number of this role's first rank
constexpr int kPeerFirst = 3;                  // number of the other role's
constexpr int64_t kEntryOffset = 6144;         // region entry_combine of every rank's window
constexpr int64_t kEntryRankBytes = 256;       // a word a rank
constexpr int64_t kEntryGateOffset = 2080;     // region gates of the workspace
constexpr int64_t kExitOffset = 7168;          // region exit_combine of every rank's window
constexpr int64_t kExitRankBytes = 256;        // a word a rank
constexpr int64_t kNoRowsOffset = 8192;        // region no_rows_combine of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;     // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;      // 1 items of 16 bytes
constexpr int kNoRowsPackets = 1;              // nothing to count
constexpr int kNoRowsToFirst = 0;              // rank number that is told first
constexpr int kNoRowsToEnd = 4;                // this rank has no rows
constexpr int kNoRowsFromFirst = 0;            // rank number that is awaited first
constexpr int kNoRowsFromEnd = 3;              // rows come from the other role alone
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_collect_b8(const __grid_constant__ CollectArgs args) {
  await_previous_kernel();  // the dispatch of this exchange
  release_next_kernel();    // the next dispatch may become resident and wait
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
  // Exit barrier: this kernel ends, and its epilogue reads rows, when every rank has sent all.
  end_behind_barrier<Group>(args.common, cfg::kExitOffset, cfg::kExitRankBytes, generation, kSecondPart);
  const int tokens = static_cast<int>(args.tokens);
  const uint8_t* const inbox =
      args.common.window + cfg::kRepliesOffset + half_of(generation) * cfg::kRepliesHalfBytes;
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread =
      block_index() % cfg::kRowBlocks * cfg::kGroupThreads + thread_index() % cfg::kGroupThreads;
  #pragma unroll 1
  for (int token = group * (cfg::kGridGroups / cfg::kGroups) + block_index() / cfg::kRowBlocks;
       token < tokens; token += cfg::kGridGroups) {
    const Destinations from =
        load_destinations(args.common.workspace + cfg::kDestinationsOffset, token);
    if (from.empty()) continue;
    const uint8_t* const replies = inbox + token * cfg::kReplyRowBytes;
    for (int share = group_thread; share < cfg::kRowShares; share += cfg::kRowThreads) {
      // Published by reply of every worker in `from`; reduce takes what they say.
      const Awaited awaited{kPhaseReply, static_cast<uint32_t>(lowest_bit(from.mask)),
                            static_cast<uint32_t>(token)};
      await_share<cfg::kRowWords, cfg::kRunWords>(args.common, replies, share, generation, awaited);
    }
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kSecondPart);
  }
  mark_finished(args.common, generation);
}
