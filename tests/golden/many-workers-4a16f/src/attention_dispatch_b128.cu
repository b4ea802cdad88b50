// afdep: many-workers-4a16f | attention | dispatch | bucket 128 | chunked
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. Rows are raw bytes; one release flag a worker and chunk of rows says that they are
// there.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                   // tokens of one source at most
constexpr int kTopK = 8;                       // choices of a token
constexpr int kExperts = 256;                  // ids are -1 or less than this
constexpr int kExpertsPerWorker = 16;          // 256 experts over 16 workers
constexpr int kWorkers = 16;                   // FFN ranks
constexpr int kBoundThreads = 512;             // 16 warps
constexpr int kBlocksPerSm = 2;                // leaves 64 registers a thread
constexpr int kWarps = 16;                     // a CTA
constexpr int kGridWarps = 128;                // 8 CTAs
constexpr int64_t kRowBytes = 14336;           // 7168 x bf16
constexpr int kRowVectors = 896;               // 16-byte vectors of a row
constexpr int kLaneVectors = 4;                // of one row, in flight together
constexpr int kChunkRows = 1;                  // rows under one release flag
constexpr int kEntryPackets = 4;               // of a token's table entry: two choices each
constexpr int64_t kEntryBytes = 64;            // 16 a packet
constexpr int64_t kTableOffset = 0;            // region table of every worker's window
constexpr int64_t kTableHalfBytes = 32768;     // by generation parity
constexpr int64_t kTableSourceBytes = 8192;    // 128 items of 64 bytes
constexpr int64_t kRowsOffset = 9863168;       // region rows of every worker's window
constexpr int64_t kRowsHalfBytes = 29360128;   // by generation parity
constexpr int64_t kRowsSourceBytes = 7340032;  // 512 items of 14336 bytes
constexpr int64_t kInboxRowBytes = 14336;      // a raw row
constexpr int64_t kFlagsOffset = 68986880;     // region row_flags of every worker's window
constexpr int64_t kFlagsHalfBytes = 8192;      // by generation parity
constexpr int64_t kFlagsSourceBytes = 2048;    // 512 items of 4 bytes
constexpr int64_t kDoneOffset = 0;             // region done of this rank's window
constexpr int64_t kDestinationsOffset = 0;     // region destinations of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_many_workers_4a16f_dispatch_b128(const __grid_constant__ DispatchArgs args) {
  await_previous_kernel();  // the collect of the exchange before this one
  release_next_kernel();    // the collect may become resident and wait
  const uint32_t generation = opened_generation(args.common);
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
    const int expert = load_route<int64_t, cfg::kTopK, cfg::kExperts, RouteCheck::kOff>(
        args.common, args.ids, token, tokens, generation);
    const Destinations to = destinations<cfg::kExpertsPerWorker>(expert);
    const Packet entry = table_packet(expert, weight, generation);  // awaited by receive
    if (lane_index() < cfg::kEntryPackets) {
      const int64_t place = table + token * cfg::kEntryBytes + lane_index() * kPacketBytes;
      for (int worker = 0; worker < cfg::kWorkers; ++worker) {
        store_packet(args.common.peer[worker] + place, entry);
      }
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
        for (uint64_t left = to.mask; left != 0; left &= left - 1) {
          store_piece<cfg::kRowVectors>(args.common.peer[lowest_bit(left)] + place, first, piece);
        }
      }
    }
    sync_warp();  // all lanes' stores come before the releases below
    for (int worker = lane_index(); worker < cfg::kWorkers; worker += 32) {
      if ((sent >> worker & 1u) == 0)
        continue;  // an empty chunk is not signalled, and nobody waits for it
      release_flag(args.common.peer[worker] + flags + chunk * 4, generation);  // awaited by receive
    }
  }
  mark_started(args.common, generation);
}
