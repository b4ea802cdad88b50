// afdep: top-one-2a4f | ffn | reply | bucket 4 | flag_in_data
// Sends each token's one row back to its source.
// One hop; no fence, no acknowledgement: each 16-byte packet carries its generation.
#include "afdep/abi.h"
#include "afdep/exchange.cuh"
#include "afdep/row.cuh"
#include "afdep/unit.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 4;                     // tokens of one source at most
constexpr int kSources = 2;                    // attention ranks
constexpr int kUnits = 8;                      // 2 sources x 4 tokens
constexpr int kTopK = 1;                       // choices of a token
constexpr int kThreads = 128;                  // 4 warps
constexpr int kBoundThreads = 448;             // launched with 128; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 2;                // leaves 72 registers a thread
constexpr int kWarps = 4;                      // a CTA
constexpr int kRowWarps = 8;                   // take a row, in one CTA or in several
constexpr int kRowWords = 2560;                // two BF16 elements a word
constexpr int kRunWords = 4;                   // a lane's part of a row is 3 vectors of 4 words: four packets
constexpr int64_t kRowBytes = 10240;           // 5120 x bf16
constexpr int64_t kRepliesOffset = 256;        // region reply_packets of every source's window
constexpr int64_t kRepliesHalfBytes = 876544;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 876544;  // 64 items of 13696 bytes
constexpr int64_t kReplyRowBytes = 13696;      // 856 packets at most
constexpr int64_t kDoneOffset = 0;             // region done of every source's window
constexpr int64_t kUnitPacketsOffset = 8192;   // region unit_packets of the workspace
constexpr int kUnitPackets = 1;                // of a unit: its rows, and its reply slot
constexpr int64_t kUnitBytes = 16;             // 16 a packet
}  // namespace cfg

// What receive wrote of a unit: its rows, and its slot where replies have slots.
using Unit = UnitRows<cfg::kTopK, cfg::kUnitPackets>;

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_top_one_2a4f_reply_b4(const __grid_constant__ ReplyArgs args) {
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
    const uint32_t slot = rows_of_unit.word(cfg::kTopK);
    uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                        half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                        token * cfg::kReplyRowBytes;
    if (!rows_of_unit.empty()) {
      const int64_t row = static_cast<int>(rows_of_unit.word(0));
      const auto part =
          load_share<cfg::kRowWords, cfg::kRunWords>(rows + row * cfg::kRowBytes, share);
      store_packets<cfg::kRowWords>(to, share, part, generation);  // awaited by collect
    }
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
