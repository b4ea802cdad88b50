// afdep: top-one-2a4f | ffn | reply | bucket 4 | flag_in_data
// Sends each token's one row back to its source.
// One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 4;                    // tokens of one source at most
constexpr int kSources = 2;                   // attention ranks
constexpr int kUnits = 8;                     // 2 sources x 4 tokens
constexpr int kTopK = 1;                      // choices of a token
constexpr int kThreads = 224;                 // 7 warps
constexpr int kBoundThreads = 384;            // launched with 224; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;               // leaves 80 registers a thread
constexpr int kGroupThreads = 224;            // 7 warps take a row
constexpr int kGroups = 1;                    // rows in flight in a CTA
constexpr int kGridGroups = 8;                // 8 CTAs
constexpr int kRowWords = 2560;               // two BF16 elements a word
constexpr int kRunWords = 4;                  // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kRowShares = 214;               // parts of 48 bytes
constexpr int64_t kRowBytes = 10240;          // 5120 x bf16
constexpr int64_t kRepliesOffset = 256;       // region reply_packets of every source's window
constexpr int64_t kRepliesHalfBytes = 54784;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 54784;  // 4 items of 13696 bytes
constexpr int64_t kReplyRowBytes = 13696;     // 856 packets at most
constexpr int64_t kDoneOffset = 0;            // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;        // region unit_rows of the workspace
constexpr int64_t kUnitSlotsOffset = 8192;    // region unit_slots of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_top_one_2a4f_reply_b4(const __grid_constant__ ReplyArgs args) {
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);
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
    const uint32_t slot =
        load_word(args.common.workspace + cfg::kUnitSlotsOffset + static_cast<int64_t>(unit) * 4);
    uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                        half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                        token * cfg::kReplyRowBytes;
    for (int first = 0; first < cfg::kRowShares; first += cfg::kGroupThreads) {
      const int share = first + group_thread;
      const int64_t row = static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), 0));
      const auto part =
          load_share<cfg::kRowWords, cfg::kRunWords>(rows + row * cfg::kRowBytes, share);
      store_packets<cfg::kRowWords>(to, share, part, generation);  // awaited by collect
    }
  }
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  if (block_index() == 0) {
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  mark_finished(args.common, generation);
}
