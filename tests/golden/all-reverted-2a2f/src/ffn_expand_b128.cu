// afdep: all-reverted-2a2f | ffn | expand | bucket 128 | flag_in_data
// Expands each row of the inbox, for which receive has waited, into the rows of the local experts
// that it chose.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/rank.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 128;                  // tokens of one source at most
constexpr int kUnits = 256;                   // 2 sources x 128 tokens
constexpr int kTopK = 8;                      // choices of a token
constexpr int kBoundThreads = 384;            // 12 warps
constexpr int kBlocksPerSm = 2;               // leaves 80 registers a thread
constexpr int kGroupThreads = 96;             // 3 warps take a row
constexpr int kGroups = 4;                    // rows in flight in a CTA
constexpr int kGridGroups = 96;               // 24 CTAs
constexpr int64_t kRowBytes = 4096;           // 2048 x bf16
constexpr int kRowWords = 1024;               // two BF16 elements a word
constexpr int kRunWords = 4;                  // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kRowShares = 86;                // parts of 48 bytes
constexpr int64_t kRowsOffset = 139264;       // region row_packets of this rank's window
constexpr int64_t kRowsHalfBytes = 2818048;   // by generation parity
constexpr int64_t kRowsSourceBytes = 704512;  // 128 items of 5504 bytes
constexpr int64_t kInboxRowBytes = 5504;      // 344 packets at most
constexpr int64_t kUnitRowsOffset = 0;        // region unit_rows of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_expand_b128(const __grid_constant__ ReceiveArgs args) {
  await_previous_kernel();  // the receive of this exchange
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const uint8_t* const inbox =
      args.common.window + cfg::kRowsOffset + half_of(generation) * cfg::kRowsHalfBytes;
  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread = thread_index() % cfg::kGroupThreads;
#pragma unroll 1
  for (int unit = block_index() * cfg::kGroups + group; unit < cfg::kUnits;
       unit += cfg::kGridGroups) {
    const int source = unit / cfg::kBucket;
    const int token = unit % cfg::kBucket;
    const int lane_row =
        load_unit_row<cfg::kTopK>(args.common.workspace + cfg::kUnitRowsOffset, unit);
    const uint32_t chosen = lanes_with_row(lane_row);
    if (chosen == 0) continue;
    const uint8_t* const from =
        inbox + source * cfg::kRowsSourceBytes + token * cfg::kInboxRowBytes;
    // Here already, unless receive gave up.
    const Awaited awaited{kPhaseRow, static_cast<uint32_t>(source), static_cast<uint32_t>(token)};
    for (int first = 0; first < cfg::kRowShares; first += cfg::kGroupThreads) {
      const int share = first + group_thread;
      const auto part = await_share<cfg::kRowWords, cfg::kRunWords>(args.common, from, share,
                                                                    generation, awaited);
      sync_warp();  // the lanes' waits end apart; they expand together
      for (uint32_t left = chosen; left != 0; left &= left - 1) {
        const int64_t to =
            static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
        store_share<cfg::kRowWords>(out_rows + to * cfg::kRowBytes, share, part);
      }
    }
  }
}
