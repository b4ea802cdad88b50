// afdep: padded-tail-2a2f | ffn | reply | bucket 1024 | bulk
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// Rows come through rings of shared-memory stages, pieces of kPieceBytes; replies leave from
// registers as raw rows. The last warp says with a release flag a reply that it is there, so that no
// warp that sums waits for its stores to arrive.
#include "afdep/abi.h"
#include "afdep/bulk.cuh"
#include "afdep/exchange.cuh"
#include "afdep/mail.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1024;                    // tokens of one source at most
constexpr int kSources = 2;                      // attention ranks
constexpr int kTopK = 4;                         // choices of a token
constexpr int kThreads = 384;                    // 12 warps
constexpr int kBoundThreads = 512;               // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                  // leaves 128 registers a thread
constexpr int kSumWarps = 11;                    // each sums through a ring of its own; the last warp flags replies
constexpr int kStages = 4;                       // of a ring, a piece each
constexpr int64_t kRowBytes = 5760;              // 2880 x bf16
constexpr int kRowVectors = 360;                 // 16-byte vectors of a row
constexpr int kLaneVectors = 8;                  // of one row, in flight together
constexpr int kPieces = 2;                       // of a row
constexpr int64_t kPieceBytes = 4096;            // 32 lanes x kLaneVectors x 16
constexpr int kMailSlots = 8;                    // replies of a warp stored and not yet flagged, at most
constexpr int64_t kSharedBytes = 183296;         // rings and mail
constexpr int kUnits = 2048;                     // 2 sources x 1024 tokens
constexpr int kBlocks = 48;                      // CTAs
constexpr int64_t kRepliesOffset = 246016;       // region replies of every source's window
constexpr int64_t kRepliesHalfBytes = 11796480;  // by generation parity
constexpr int64_t kRepliesSlotBytes = 5898240;   // 1024 items of 5760 bytes
constexpr int64_t kReplyRowBytes = 5760;         // a raw row
constexpr int64_t kFlagsOffset = 23838976;       // region reply_flags of every source's window
constexpr int64_t kFlagsHalfBytes = 8192;        // by generation parity
constexpr int64_t kFlagsWorkerBytes = 4096;      // 1024 items of 4 bytes
constexpr int64_t kDoneOffset = 0;               // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;           // region unit_rows of the workspace
}  // namespace cfg

struct Work {
  int32_t unit;   // source + token * kSources
  int16_t piece;  // of the row
  int16_t rows;   // that are summed
};

struct Shared {
  alignas(128) uint8_t stage[cfg::kSumWarps][cfg::kStages][cfg::kPieceBytes];
  BulkBarrier loaded[cfg::kSumWarps][cfg::kStages];
  Mailbox<cfg::kMailSlots> stored[cfg::kSumWarps];  // units whose replies have been stored
  Work work[cfg::kSumWarps][cfg::kStages];  // what the stages' rows belong to, oldest first
  uint32_t next_unit;                       // of the block's, which no warp has taken yet
};
static_assert(sizeof(Shared) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_padded_tail_2a2f_reply_b1024(const __grid_constant__ ReplyArgs args) {
  Shared& shared = shared_memory<Shared>();
  const int warp = warp_index();
  const auto source_of = [](int unit) { return unit % cfg::kSources; };
  const auto token_of = [](int unit) { return unit / cfg::kSources; };
  const auto lane_row_of = [&](int unit) {
    if (unit >= cfg::kUnits) return kNoRow;
    return load_unit_row<cfg::kTopK>(args.common.workspace + cfg::kUnitRowsOffset,
                                     source_of(unit) * cfg::kBucket + token_of(unit));
  };
  if (warp < cfg::kSumWarps) {
    if (lane_index() < cfg::kStages) init_barrier(shared.loaded[warp][lane_index()]);
    init_mailbox(shared.stored[warp]);
  }
  publish_barriers();
  if (thread_index() == 0) shared.next_unit = cfg::kSumWarps;
  await_previous_kernel();  // the receive of this exchange, and whoever wrote the rows
  release_next_kernel();    // the next receive may become resident and wait
  // Ordinary stores wrote the rows: one fence for the block, and the barrier hands it on.
  if (warp == cfg::kSumWarps) fence_bulk_global();
  int next_unit = warp * cfg::kBlocks + block_index();  // each warp's first
  int next_rows = warp < cfg::kSumWarps ? lane_row_of(next_unit) : kNoRow;
  const uint32_t generation = started_generation(args.common);
  sync_block();
  const uint8_t* const rows = static_cast<const uint8_t*>(args.rows);
  const uint32_t half = half_of(generation);

  if (warp == cfg::kSumWarps) {
    flag_mail(shared.stored, [&](int unit) {
      const int64_t flag = cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes +
                           args.common.index * cfg::kFlagsWorkerBytes + token_of(unit) * 4;
      store_flag_at(args.common.peer[source_of(unit)] + flag, generation);  // awaited by collect
    });
  } else {
    // Blocks take tokens in turn, and sources take turns within them, so that tokens are answered
    // about in the order in which collect asks for them. Within a block warps take tokens as they
    // become free: how many rows a token has here is a matter of routing.
    const auto take_unit = [&]() {
      uint32_t taken = 0;
      if (lane_index() == 0) taken = take_shared(shared.next_unit);
      return static_cast<int>(shuffle(taken, 0)) * cfg::kBlocks + block_index();
    };
    uint32_t sent = 0;  // units that this warp has handed to the flagging warp
    const auto hand_over = [&](int unit) {
      sync_warp();  // all lanes' stores come before lane 0's arrival
      if (lane_index() == 0) send_mail(shared.stored[warp], sent, unit);
      ++sent;
    };

    // Feeding: the next row's next piece goes into the next stage.
    uint32_t loads = 0;
    uint32_t queued = 0;       // pieces of tokens that have begun to be fed
    int rows_now = kNoRow;     // the token that is being fed: lane k's row,
    uint32_t chosen = 0;       // the lanes that have one,
    uint32_t left = 0;         // those not fed for this piece,
    int piece = cfg::kPieces;  // and the piece
    Work now{};
    const auto feed = [&]() {
      while (left == 0) {
        if (piece + 1 < cfg::kPieces) {
          ++piece;
        } else {
          if (next_unit >= cfg::kUnits) return;
          rows_now = next_rows;
          chosen = lanes_with_row(rows_now);
          now = Work{next_unit, 0, static_cast<int16_t>(count_bits(chosen))};
          next_unit = take_unit();
          next_rows = lane_row_of(next_unit);
          if (chosen == 0) continue;
          piece = 0;
        }
        left = chosen;
        now.piece = static_cast<int16_t>(piece);
        if (lane_index() == 0) shared.work[warp][queued % cfg::kStages] = now;
        ++queued;
      }
      const int64_t row =
          static_cast<int>(shuffle(static_cast<uint32_t>(rows_now), lowest_bit(left)));
      left &= left - 1;
      if (lane_index() == 0) {
        const uint32_t stage = loads % cfg::kStages;
        bulk_load(shared.stage[warp][stage],
                  rows + row * cfg::kRowBytes + piece * cfg::kPieceBytes,
                  piece_bytes<cfg::kRowBytes, cfg::kPieceBytes>(piece),
                  shared.loaded[warp][stage]);
      }
      ++loads;
    };
#pragma unroll 1
    for (int i = 0; i < cfg::kStages; ++i) feed();

    uint32_t sums = 0;  // stages that have been added up
#pragma unroll 1
    for (uint32_t done = 0; done < queued; ++done) {
      sync_warp();  // lane 0 has described the work
      const Work work = shared.work[warp][done % cfg::kStages];
      const int source = source_of(work.unit);
      const int token = token_of(work.unit);
      RowSum<4 * cfg::kLaneVectors> sum;
      sum.clear();
#pragma unroll 1
      for (int i = 0; i < work.rows; ++i) {
        const uint32_t stage = sums % cfg::kStages;
        await_barrier(shared.loaded[warp][stage], sums / cfg::kStages & 1u);
        add_staged<cfg::kLaneVectors>(sum, shared.stage[warp][stage]);
        ++sums;
        sync_warp();  // all lanes have read the stage
        feed();
      }
      const uint32_t slot = args.common.index;
      uint8_t* const to = args.common.peer[source] + cfg::kRepliesOffset +
                          half * cfg::kRepliesHalfBytes + slot * cfg::kRepliesSlotBytes +
                          token * cfg::kReplyRowBytes;
      store_piece<cfg::kRowVectors>(to, work.piece * 32 * cfg::kLaneVectors + lane_index(),
                                    rounded<cfg::kLaneVectors>(sum));
      if (work.piece == cfg::kPieces - 1) hand_over(work.unit);
    }
    hand_over(kLastMail);
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
  if (block_index() == 0 && thread_index() == 0) {
    store_relaxed(&args.common.control->units_taken, 0);  // receive, which takes them, has ended
  }
  mark_finished(args.common, generation);
}
