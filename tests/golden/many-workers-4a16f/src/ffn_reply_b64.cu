// afdep: many-workers-4a16f | ffn | reply | bucket 64 | flag_in_data
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 64;                     // tokens of one source at most
constexpr int kSources = 4;                     // attention ranks
constexpr int kUnits = 256;                     // 4 sources x 64 tokens
constexpr int kTopK = 8;                        // choices of a token
constexpr int kThreads = 320;                   // 10 warps
constexpr int kBoundThreads = 384;              // launched with 320; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                 // leaves 80 registers a thread
constexpr int kGroupThreads = 320;              // 10 warps take a row
constexpr int kGroups = 1;                      // rows in flight in a CTA
constexpr int kGridGroups = 24;                 // 24 CTAs
constexpr int kRowLots = 1;                     // a group takes a row
constexpr int kRowWords = 3584;                 // two BF16 elements a word
constexpr int kRunWords = 4;                    // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int kRowsInFlight = 4;                // of a token, in a lane's registers
constexpr int64_t kRepliesOffset = 256;         // region reply_packets of every source's window
constexpr int64_t kRepliesHalfBytes = 9797632;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 1224704;  // 64 items of 19136 bytes
constexpr int64_t kReplyRowBytes = 19136;       // 1196 packets at most
constexpr int64_t kDoneOffset = 0;              // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
constexpr int64_t kUnitSlotsOffset = 77824;     // region unit_slots of the workspace
}  // namespace cfg

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_many_workers_4a16f_reply_b64(const __grid_constant__ ReplyArgs args) {
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);
  // A group of warps takes a unit, or a lot of one, then another whose rows it already knows.
  const int group = thread_index() / cfg::kGroupThreads;
  const int group_thread = thread_index() % cfg::kGroupThreads;
  const uint8_t* const unit_rows = args.common.workspace + cfg::kUnitRowsOffset;
  constexpr int kLots = cfg::kUnits * cfg::kRowLots;
  int lot = group * (cfg::kGridGroups / cfg::kGroups) + block_index();
  int lane_row =
      lot < kLots ? load_unit_row<cfg::kTopK>(unit_rows, lot / cfg::kRowLots) : kNoRow;
  #pragma unroll 1
  while (lot < kLots) {
    const int next = lot + cfg::kGridGroups;
    const int next_lane_row =
        next < kLots ? load_unit_row<cfg::kTopK>(unit_rows, next / cfg::kRowLots) : kNoRow;
    const uint32_t chosen = lanes_with_row(lane_row);
    if (chosen != 0) {
      const int unit = lot / cfg::kRowLots;
      const int share = lot % cfg::kRowLots * cfg::kGroupThreads + group_thread;
      const int source = unit / cfg::kBucket;
      const int token = unit % cfg::kBucket;
      const uint32_t slot =
          load_word(args.common.workspace + cfg::kUnitSlotsOffset + static_cast<int64_t>(unit) * 4);
      uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                          half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                          token * cfg::kReplyRowBytes;
      const auto part = sum_rows_share<cfg::kRowsInFlight, cfg::kRowWords, cfg::kRunWords>(
          rows, lane_row, chosen, share);
      store_packets<cfg::kRowWords>(to, share, part, generation);  // awaited by collect
    }
    lot = next;
    lane_row = next_lane_row;
  }
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  if (block_index() == 0) {
    #pragma unroll 1
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  mark_finished(args.common, generation);
}
