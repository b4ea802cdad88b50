// afdep: three-workers-1a3f | ffn | reply | bucket 8 | flag_in_data
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/unit.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 8;                     // tokens of one source at most
constexpr int kSources = 1;                    // attention ranks
constexpr int kUnits = 8;                      // 1 sources x 8 tokens
constexpr int kTopK = 8;                       // choices of a token
constexpr int kThreads = 192;                  // 6 warps
constexpr int kBoundThreads = 448;             // launched with 192; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                // leaves 72 registers a thread
constexpr int kWarps = 6;                      // a CTA
constexpr int kRowWarps = 12;                  // take a row, in one CTA or in several
constexpr int kRowWords = 1024;                // two BF16 elements a word
constexpr int kRunWords = 1;                   // a lane's part of a row is 3 words: one packet
constexpr int kRowsInFlight = 8;               // of a token, in a lane's registers
constexpr int kDoneBlock = 16;                 // tells the sources, and no more
constexpr int64_t kRepliesOffset = 256;        // region reply_packets of every source's window
constexpr int64_t kRepliesHalfBytes = 132096;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 44032;   // 8 items of 5504 bytes
constexpr int64_t kReplyRowBytes = 5504;       // 344 packets at most
constexpr int64_t kDoneOffset = 0;             // region done of every source's window
constexpr int64_t kUnitPacketsOffset = 16384;  // region unit_packets of the workspace
constexpr int kUnitPackets = 3;                // of a unit: its rows, and its reply slot
constexpr int64_t kUnitBytes = 48;             // 16 a packet
}  // namespace cfg

// What receive wrote of a unit: its rows, and its slot where replies have slots.
using Unit = UnitRows<cfg::kTopK, cfg::kUnitPackets>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_three_workers_1a3f_reply_b8(const __grid_constant__ ReplyArgs args) {
  // kRowWarps warps take a unit, whose rows are known before receive has written them all.
  const int warp = block_index() * cfg::kWarps + warp_index();
  const int unit = warp / cfg::kRowWarps;
  const int share = warp % cfg::kRowWarps * 32 + lane_index();
  const uint8_t* const unit_at =
      args.common.workspace + cfg::kUnitPacketsOffset + unit * cfg::kUnitBytes;
  Unit rows_of_unit{};
  if (unit < cfg::kUnits) rows_of_unit = load_unit<Unit>(unit_at);
  const uint32_t expected = expected_generation(args.common);
  if (unit < cfg::kUnits) look_for_unit(rows_of_unit, unit_at, expected);
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  const uint32_t generation = started_generation(args.common);
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);
  if (unit < cfg::kUnits) {
    const int source = unit / cfg::kBucket;
    const int token = unit % cfg::kBucket;
    if (!rows_of_unit.written_for(expected)) rows_of_unit = load_unit<Unit>(unit_at);
    const uint32_t slot = args.common.index;
    uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                        half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                        token * cfg::kReplyRowBytes;
    if (!rows_of_unit.empty()) {
      const auto part =
          sum_unit_share<cfg::kRowsInFlight, cfg::kRowWords, cfg::kRunWords>(
              rows, rows_of_unit, share);
      store_packets<cfg::kRowWords>(to, share, part, generation);  // awaited by collect
    }
  }
  // Receive has ended, so every inbox word of this generation is read: each source may write this
  // half again. Sources that sent no rows are told too, or they would lap this worker. Awaited by
  // dispatch, two generations on.
  // A block of its own does it, so that its fence waits for no reply.
  if (block_index() == cfg::kDoneBlock) {
    #pragma unroll 1
    for (int source = thread_index(); source < cfg::kSources; source += cfg::kThreads) {
      release_flag(args.common.peer[source] + cfg::kDoneOffset + args.common.index * 4, generation);
    }
  }
  // The last block: by then the others have had their early look, which reads that word.
  mark_finished(args.common, generation, cfg::kDoneBlock);
}
