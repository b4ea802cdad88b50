// afdep: all-reverted-2a2f | attention | dispatch | bucket 128 | flag_in_data
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                  // tokens of one source at most
constexpr int kTopK = 8;                      // choices of a token
constexpr int kExperts = 128;                 // ids are -1 or less than this
constexpr int kExpertsPerWorker = 64;         // 128 experts over 2 workers
constexpr int kWorkers = 2;                   // FFN ranks
constexpr int kBoundThreads = 384;            // 12 warps
constexpr int kBlocksPerSm = 2;               // leaves 80 registers a thread
constexpr int kGroupThreads = 96;             // 3 warps take a row
constexpr int kGroups = 4;                    // rows in flight in a CTA
constexpr int kGridGroups = 96;               // 24 CTAs
constexpr int kWarps = 12;                    // a CTA
constexpr int kGridWarps = 288;               // 24 CTAs
constexpr int64_t kRowBytes = 4096;           // 2048 x bf16
constexpr int kRowLots = 1;                   // a group takes a row
constexpr int kRowWords = 1024;               // two BF16 elements a word
constexpr int kRunWords = 4;                  // a lane's part of a row is 3 vectors of 4 words: four packets
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
constexpr int kGridBlocks = 24;               // CTAs
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
    afdep_all_reverted_2a2f_dispatch_b128(const __grid_constant__ DispatchArgs args) {
  const auto done = look_at_all_done<cfg::kWorkers>(args.common.window + cfg::kDoneOffset);
  await_previous_kernel();  // the collect of the exchange before this one
  release_next_kernel();    // the collect may become resident and wait
  const int tokens = static_cast<int>(args.tokens);
  const uint8_t* const x = static_cast<const uint8_t*>(args.x);
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread = thread_index() % cfg::kGroupThreads;
  // A group of warps takes a token, or a lot of one, then another of which it already has the loads
  // in flight.
  const auto share_of = [&](int lot) {
    return lot % cfg::kRowLots * cfg::kGroupThreads + group_thread;
  };
  const auto load_lot = [&](int lot) {
    return load_input_share<cfg::kRowWords, cfg::kRunWords>(
        x + static_cast<int64_t>(lot / cfg::kRowLots) * cfg::kRowBytes, share_of(lot));
  };
  const int lots = tokens * cfg::kRowLots;
  int lot = group * (cfg::kGridGroups / cfg::kGroups) + block_index();
  int64_t choice = load_choice<int64_t, cfg::kTopK>(args.ids, lot / cfg::kRowLots, tokens);
  Share<cfg::kRunWords> part{};
  if (lot < lots) part = load_lot(lot);
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

  // The table goes first: a worker can place no row before it has ranked every id. An unused token
  // says "no experts".
  for (int token = warp_index() * (cfg::kGridWarps / cfg::kWarps) + block_index();
       token < cfg::kBucket; token += cfg::kGridWarps) {
    const uint32_t weight = load_weight<cfg::kTopK>(args.weights, token, tokens);
    const int expert = load_route<int64_t, cfg::kTopK, cfg::kExperts, RouteCheck::kReport>(
        args.common, args.ids, token, tokens, generation);
    const Destinations to = destinations<cfg::kExpertsPerWorker>(expert);
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

  #pragma unroll 1
  while (lot < lots) {
    const int next = lot + cfg::kGridGroups;
    const int64_t next_choice =
        load_choice<int64_t, cfg::kTopK>(args.ids, next / cfg::kRowLots, tokens);
    Share<cfg::kRunWords> next_part{};
    if (next < lots) next_part = load_lot(next);
    const Destinations to = destinations<cfg::kExpertsPerWorker, cfg::kWorkers>(
        expert_in_range<cfg::kExperts>(choice));
    const int64_t place = rows + lot / cfg::kRowLots * cfg::kInboxRowBytes;  // awaited by receive
    const int share = share_of(lot);
    if (to.includes(0)) {
      store_packets<cfg::kRowWords>(args.common.peer[0] + place, share, part, generation);
    }
    if (to.includes(1)) {
      store_packets<cfg::kRowWords>(args.common.peer[1] + place, share, part, generation);
    }
    lot = next;
    choice = next_choice;
    part = next_part;
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
