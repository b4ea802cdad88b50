// afdep: traced-2a2f | attention | dispatch | bucket 128 | flag_in_data
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"
#include "afdep/trace.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                     // tokens of one source at most
constexpr int kTopK = 8;                         // choices of a token
constexpr int kExperts = 128;                    // ids are -1 or less than this
constexpr int kExpertsPerWorker = 64;            // 128 experts over 2 workers
constexpr int kWorkers = 2;                      // FFN ranks
constexpr int kBoundThreads = 384;               // 12 warps
constexpr int kBlocksPerSm = 2;                  // leaves 80 registers a thread
constexpr int kGroupThreads = 96;                // 3 warps take a row
constexpr int kGroups = 4;                       // rows in flight in a CTA
constexpr int kGridGroups = 96;                  // 24 CTAs
constexpr int kWarps = 12;                       // a CTA
constexpr int kGridWarps = 288;                  // 24 CTAs
constexpr int64_t kRowBytes = 4096;              // 2048 x bf16
constexpr int kRowLots = 1;                      // a group takes a row
constexpr int kRowWords = 1024;                  // two BF16 elements a word
constexpr int kRunWords = 4;                     // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kEntryPackets = 4;                 // of a token's table entry: two choices each
constexpr int64_t kEntryBytes = 64;              // 16 a packet
constexpr int64_t kTableOffset = 0;              // region table of every worker's window
constexpr int64_t kTableHalfBytes = 65536;       // by generation parity
constexpr int64_t kTableSourceBytes = 32768;     // 512 items of 64 bytes
constexpr int64_t kRowsOffset = 131072;          // region row_packets of every worker's window
constexpr int64_t kRowsHalfBytes = 1409024;      // by generation parity
constexpr int64_t kRowsSourceBytes = 704512;     // 128 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;         // 344 packets at most
constexpr int64_t kDoneOffset = 0;               // region done of this rank's window
constexpr int64_t kDestinationsOffset = 0;       // region destinations of the workspace
constexpr int64_t kTraceOffset = 16384;          // region trace of the workspace
constexpr int64_t kTraceExchangeBytes = 393216;  // the last 4 are kept
constexpr int kTraceWarps = 16;                  // places a block, the same in every kernel of the role
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_traced_2a2f_dispatch_b128(const __grid_constant__ DispatchArgs args) {
  WarpTrace<cfg::kTraceOffset, cfg::kTraceExchangeBytes, cfg::kTraceWarps> trace;
  const auto done = look_at_all_done<cfg::kWorkers>(args.common.window + cfg::kDoneOffset);
  await_previous_kernel();  // the collect of the exchange before this one
  trace.awaited();
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
  trace.open(args.common.workspace, generation);

  // This source's place in every worker's inbox.
  const uint32_t half = half_of(generation);
  const int64_t table =
      cfg::kTableOffset + half * cfg::kTableHalfBytes + args.common.index * cfg::kTableSourceBytes;
  const int64_t rows =
      cfg::kRowsOffset + half * cfg::kRowsHalfBytes + args.common.index * cfg::kRowsSourceBytes;

  // Worker w may still read this half for generation - 2: its done word says when it has ended.
  await_all_done<cfg::kWorkers>(args.common, args.common.window + cfg::kDoneOffset, generation,
                                done);
  trace.mark(kTraceDoneSeen);

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
  trace.mark(kTraceTableSent);

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
  trace.mark(kTraceRowsSent);
  mark_started(args.common, generation);
  trace.mark(kTraceEnd);
}
