// afdep: all-reverted-2a2f | attention | reduce | bucket 128 | flag_in_data
// Sums each token's replies, for which collect has waited, in ascending worker order.
// A token without experts is zero.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBoundThreads = 384;              // 12 warps
constexpr int kBlocksPerSm = 2;                 // leaves 80 registers a thread
constexpr int kGroupThreads = 96;               // 3 warps take a row
constexpr int kGroups = 4;                      // rows in flight in a CTA
constexpr int kRowBlocks = 1;                   // CTAs share a row
constexpr int kRowThreads = 96;                 // of a row in all of them
constexpr int kGridGroups = 96;                 // 24 CTAs
constexpr int64_t kRowBytes = 4096;             // 2048 x bf16
constexpr int kRowWords = 1024;                 // two BF16 elements a word
constexpr int kRunWords = 4;                    // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kRowShares = 86;                  // parts of 48 bytes
constexpr int kReplySlots = 2;                  // one a worker
constexpr int64_t kRepliesOffset = 1417472;     // worker 0's block of region reply_packets of this rank's window
constexpr int64_t kRepliesHalfBytes = 2818048;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 704512;   // 128 items of 5504 bytes
constexpr int64_t kReplyRowBytes = 5504;        // 344 packets at most
constexpr int64_t kDestinationsOffset = 0;      // region destinations of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_reduce_b128(const __grid_constant__ CollectArgs args) {
  await_previous_kernel();  // the collect of this exchange
  release_next_kernel();    // the next dispatch may become resident and wait
  const uint32_t generation = started_generation(args.common);
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
    uint8_t* const to =
        static_cast<uint8_t*>(args.out) + static_cast<int64_t>(token) * cfg::kRowBytes;
    for (int share = group_thread; share < cfg::kRowShares; share += cfg::kRowThreads) {
      Share<cfg::kRunWords> sum{};
      const uint8_t* const replies = inbox + token * cfg::kReplyRowBytes;
      // Published by reply of every worker in `from`.
      if (!from.empty()) {
        sum = sum_replies_share<cfg::kReplySlots, false, cfg::kRowWords, cfg::kRunWords>(
            args.common, replies, cfg::kRepliesSlotBytes, from, token, share, generation);
      }
      store_share<cfg::kRowWords>(to, share, sum);
    }
  }
}
