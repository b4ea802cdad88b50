// afdep: all-reverted-2a2f | attention | dispatch | bucket 1 | flag_in_data
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1;                    // tokens of one source at most
constexpr int kTopK = 8;                      // choices of a token
constexpr int kExperts = 128;                 // ids are -1 or less than this
constexpr int kExpertsPerWorker = 64;         // 128 experts over 2 workers
constexpr int kWorkers = 2;                   // FFN ranks
constexpr int kBoundThreads = 384;            // launched with 128; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;               // leaves 80 registers a thread
constexpr int kGroupThreads = 128;            // 4 warps take a row's part of one CTA
constexpr int kGroups = 1;                    // rows in flight in a CTA
constexpr int kRowBlocks = 3;                 // CTAs share a row
constexpr int64_t kRowBytes = 4096;           // 2048 x bf16
constexpr int kRowWords = 1024;               // two BF16 elements a word
constexpr int kRunWords = 1;                  // a lane's part of a row is 3 words: one packet
constexpr int kEntryPackets = 4;              // of a token's table entry: two choices each
constexpr int64_t kEntryBytes = 64;           // 16 a packet
constexpr int64_t kTableOffset = 8192;        // region table of every worker's window
constexpr int64_t kTableHalfBytes = 65536;    // by generation parity
constexpr int64_t kTableSourceBytes = 16384;  // 256 items of 64 bytes
constexpr int64_t kRowsOffset = 139264;       // region row_packets of every worker's window
constexpr int64_t kRowsHalfBytes = 2818048;   // by generation parity
constexpr int64_t kRowsSourceBytes = 704512;  // 128 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;      // 344 packets at most
constexpr int64_t kDoneOffset = 8192;         // region done of this rank's window
constexpr int64_t kDestinationsOffset = 0;    // region destinations of the workspace
constexpr int kRanks = 4;                     // numbered attention first
constexpr int kOwnFirst = 0;                  // number of this role's first rank
constexpr int kPeerFirst = 2;                 // number of the other role's
constexpr int64_t kEntryOffset = 0;           // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;      // a word a rank
constexpr int64_t kEntryGateOffset = 4096;    // region gates of the workspace
constexpr int64_t kExitOffset = 1024;         // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;       // a word a rank
constexpr int64_t kBlockGatesOffset = 4352;   // region block_gates of the workspace
constexpr int kGridBlocks = 3;                // CTAs
constexpr int64_t kNoRowsOffset = 2048;       // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;    // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;     // 11 items of 16 bytes
constexpr int kNoRowsPackets = 11;            // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;             // rank number that is told first
constexpr int kNoRowsToEnd = 2;               // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;           // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;             // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_dispatch_b1(const __grid_constant__ DispatchArgs args) {
  const auto done = look_at_all_done<cfg::kWorkers>(args.common.window + cfg::kDoneOffset);
  await_previous_kernel();  // the collect of the exchange before this one
  release_next_kernel();    // the collect may become resident and wait
  const int tokens = static_cast<int>(args.tokens);
  const uint8_t* const x = static_cast<const uint8_t*>(args.x);
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread = thread_index() % cfg::kGroupThreads;
  // One token a group of warps. All loads, the generation's too, are in flight before the first one
  // is used.
  const int token = block_index() / cfg::kRowBlocks * cfg::kGroups + group;
  const int share = block_index() % cfg::kRowBlocks * cfg::kGroupThreads + group_thread;
  const int64_t choice = load_choice<int64_t, cfg::kTopK>(args.ids, token, tokens);
  const uint32_t weight = load_weight<cfg::kTopK>(args.weights, token, tokens);
  Share<cfg::kRunWords> part{};
  if (token < tokens) {
    part = load_input_share<cfg::kRowWords, cfg::kRunWords>(
        x + static_cast<int64_t>(token) * cfg::kRowBytes, share);
  }
  const uint32_t generation = opened_generation(args.common);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kFirstPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }

  // This source's place in every worker's inbox.
  const uint32_t half = half_of(generation);
  const int64_t table =
      cfg::kTableOffset + half * cfg::kTableHalfBytes + args.common.index * cfg::kTableSourceBytes;
  const int64_t rows =
      cfg::kRowsOffset + half * cfg::kRowsHalfBytes + args.common.index * cfg::kRowsSourceBytes;

  // Worker w may still read this half for generation - 2: its done word says when it has ended.
  await_all_done<cfg::kWorkers>(args.common, args.common.window + cfg::kDoneOffset, generation,
                                done);

  const Destinations to = destinations<cfg::kExpertsPerWorker, cfg::kWorkers>(
      expert_in_range<cfg::kExperts>(choice));

  // The entry goes out for every token of the bucket: an unused one says "no experts".
  if (token < cfg::kBucket && share >= (cfg::kRowBlocks * cfg::kGroupThreads) - 32) {
    const int expert =
        checked_route<cfg::kExperts, RouteCheck::kReport>(args.common, choice, token, generation);
    const Packet entry = table_packet(expert, weight, generation);  // awaited by receive
    if (lane_index() < cfg::kEntryPackets) {
      const int64_t place = table + token * cfg::kEntryBytes + lane_index() * kPacketBytes;
      store_packet(args.common.peer[0] + place, entry);
      store_packet(args.common.peer[1] + place, entry);
    }
    if (lane_index() == 0) {
      store_destinations(args.common.workspace + cfg::kDestinationsOffset, token, to);
    }
  }
  const int64_t place = rows + token * cfg::kInboxRowBytes;  // awaited by receive
  if (to.includes(0)) {
    store_packets<cfg::kRowWords>(args.common.peer[0] + place, share, part, generation);
  }
  if (to.includes(1)) {
    store_packets<cfg::kRowWords>(args.common.peer[1] + place, share, part, generation);
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  // Exit barrier: this rank ends when every rank has sent all.
  leave_barrier<Group, cfg::kGridBlocks>(args.common, cfg::kExitOffset, cfg::kExitRankBytes,
                                         cfg::kBlockGatesOffset, generation, kFirstPart);
  mark_started(args.common, generation);
}
