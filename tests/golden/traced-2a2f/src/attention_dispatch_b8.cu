// afdep: traced-2a2f | attention | dispatch | bucket 8 | flag_in_data
// Sends every worker the top-k table, and each token's row to the workers that hold one of its
// experts. One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/table.cuh"
#include "afdep/trace.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 8;                       // tokens of one source at most
constexpr int kTopK = 8;                         // choices of a token
constexpr int kExperts = 128;                    // ids are -1 or less than this
constexpr int kExpertsPerWorker = 64;            // 128 experts over 2 workers
constexpr int kWorkers = 2;                      // FFN ranks
constexpr int kBoundThreads = 448;               // launched with 192; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                  // leaves 72 registers a thread
constexpr int kGroupThreads = 192;               // 6 warps take a row's part of one CTA
constexpr int kGroups = 1;                       // rows in flight in a CTA
constexpr int kRowBlocks = 2;                    // CTAs share a row
constexpr int64_t kRowBytes = 4096;              // 2048 x bf16
constexpr int kRowWords = 1024;                  // two BF16 elements a word
constexpr int kRunWords = 1;                     // a lane's part of a row is 3 words: one packet
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
    afdep_traced_2a2f_dispatch_b8(const __grid_constant__ DispatchArgs args) {
  WarpTrace<cfg::kTraceOffset, cfg::kTraceExchangeBytes, cfg::kTraceWarps> trace;
  const auto done = look_at_all_done<cfg::kWorkers>(args.common.window + cfg::kDoneOffset);
  await_previous_kernel();  // the collect of the exchange before this one
  trace.awaited();
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
  trace.mark(kTraceTableSent);
  const int64_t place = rows + token * cfg::kInboxRowBytes;  // awaited by receive
  if (to.includes(0)) {
    store_packets<cfg::kRowWords>(args.common.peer[0] + place, share, part, generation);
  }
  if (to.includes(1)) {
    store_packets<cfg::kRowWords>(args.common.peer[1] + place, share, part, generation);
  }
  trace.mark(kTraceRowsSent);
  mark_started(args.common, generation);
  trace.mark(kTraceEnd);
}
