// afdep: all-reverted-3a1f | attention | dispatch | bucket 128 | chunked
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. Rows are raw bytes; one release flag a worker and chunk of rows says that they are
// there.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                   // tokens of one source at most
constexpr int kTopK = 8;                       // choices of a token
constexpr int kExperts = 128;                  // ids are -1 or less than this
constexpr int kExpertsPerWorker = 128;         // 128 experts over 1 workers
constexpr int kWorkers = 1;                    // FFN ranks
constexpr int kBoundThreads = 512;             // 16 warps
constexpr int kBlocksPerSm = 2;                // leaves 64 registers a thread
constexpr int kWarps = 16;                     // a CTA
constexpr int kGridWarps = 128;                // 8 CTAs
constexpr int64_t kRowBytes = 4096;            // 2048 x bf16
constexpr int kRowVectors = 256;               // 16-byte vectors of a row
constexpr int kLaneVectors = 4;                // of one row, in flight together
constexpr int kChunkRows = 1;                  // rows under one release flag
constexpr int kEntryPackets = 4;               // of a token's table entry: two choices each
constexpr int64_t kEntryBytes = 64;            // 16 a packet
constexpr int64_t kTableOffset = 10240;        // region table of every worker's window
constexpr int64_t kTableHalfBytes = 32768;     // by generation parity
constexpr int64_t kTableSourceBytes = 8192;    // 128 items of 64 bytes
constexpr int64_t kRowsOffset = 428032;        // region rows of every worker's window
constexpr int64_t kRowsHalfBytes = 4194304;    // by generation parity
constexpr int64_t kRowsSourceBytes = 1048576;  // 256 items of 4096 bytes
constexpr int64_t kInboxRowBytes = 4096;       // a raw row
constexpr int64_t kFlagsOffset = 9080832;      // region row_flags of every worker's window
constexpr int64_t kFlagsHalfBytes = 4096;      // by generation parity
constexpr int64_t kFlagsSourceBytes = 1024;    // 256 items of 4 bytes
constexpr int64_t kDoneOffset = 10240;         // region done of this rank's window
constexpr int64_t kDestinationsOffset = 0;     // region destinations of the workspace
constexpr int kRanks = 4;                      // numbered attention first
constexpr int kOwnFirst = 0;                   // number of this role's first rank
constexpr int kPeerFirst = 3;                  // number of the other role's
constexpr int64_t kEntryOffset = 0;            // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;       // a word a rank
constexpr int64_t kEntryGateOffset = 2048;     // region gates of the workspace
constexpr int64_t kExitOffset = 1024;          // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;        // a word a rank
constexpr int64_t kBlockGatesOffset = 2304;    // region block_gates of the workspace
constexpr int kGridBlocks = 8;                 // CTAs
constexpr int64_t kNoRowsOffset = 2048;        // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 2048;     // by generation parity
constexpr int64_t kNoRowsRankBytes = 512;      // 22 items of 16 bytes
constexpr int kNoRowsPackets = 22;             // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;              // rank number that is told first
constexpr int kNoRowsToEnd = 3;                // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;            // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;              // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_3a1f_dispatch_b128(const __grid_constant__ DispatchArgs args) {
  await_previous_kernel();  // the collect of the exchange before this one
  release_next_kernel();    // the collect may become resident and wait
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
  const int tokens = static_cast<int>(args.tokens);
  const uint8_t* const x = static_cast<const uint8_t*>(args.x);

  // This source's place in every worker's inbox.
  const uint32_t half = half_of(generation);
  const int64_t table =
      cfg::kTableOffset + half * cfg::kTableHalfBytes + args.common.index * cfg::kTableSourceBytes;
  const int64_t rows =
      cfg::kRowsOffset + half * cfg::kRowsHalfBytes + args.common.index * cfg::kRowsSourceBytes;
  const int64_t flags =
      cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes + args.common.index * cfg::kFlagsSourceBytes;

  // Worker w may still read this half for generation - 2: its done word says when it has ended.
  await_all_done<cfg::kWorkers>(args.common, args.common.window + cfg::kDoneOffset, generation);

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
    }
    if (lane_index() == 0) {
      store_destinations(args.common.workspace + cfg::kDestinationsOffset, token, to);
    }
  }

  #pragma unroll 1
  for (int chunk = block_index() * cfg::kWarps + warp_index(); chunk * cfg::kChunkRows < tokens;
       chunk += cfg::kGridWarps) {
    uint64_t sent = 0;  // workers that got a row of this chunk
    #pragma unroll 1
    for (int token = chunk * cfg::kChunkRows; token < (chunk + 1) * cfg::kChunkRows; ++token) {
      const int expert = load_route<int64_t, cfg::kTopK, cfg::kExperts, RouteCheck::kOff>(
          args.common, args.ids, token, tokens, generation);
      const Destinations to = destinations<cfg::kExpertsPerWorker>(expert);
      if (to.empty()) continue;  // no experts, or beyond the tokens
      sent |= to.mask;
      const uint8_t* const from = x + static_cast<int64_t>(token) * cfg::kRowBytes;
      const int64_t place = rows + token * cfg::kInboxRowBytes;
      for (int first = lane_index(); first < cfg::kRowVectors; first += 32 * cfg::kLaneVectors) {
        const auto piece = load_input_piece<cfg::kRowVectors, cfg::kLaneVectors>(from, first);
        if (to.includes(0))
          store_piece<cfg::kRowVectors>(args.common.peer[0] + place, first, piece);
      }
    }
    sync_warp();  // all lanes' stores come before the releases below
    for (int worker = lane_index(); worker < cfg::kWorkers; worker += 32) {
      if ((sent >> worker & 1u) == 0)
        continue;  // an empty chunk is not signalled, and nobody waits for it
      release_flag(args.common.peer[worker] + flags + chunk * 4, generation);  // awaited by receive
    }
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
