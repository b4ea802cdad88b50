// afdep: all-reverted-3a1f | ffn | reply | bucket 256 | bulk
// Sums each token's rows on this worker, in top-k order, and sends the sum back to its source.
// Rows come through rings of shared-memory stages, pieces of kPieceBytes; replies leave from
// registers as raw rows. The last warp says with a release flag a reply that it is there, so that no
// warp that sums waits for its stores to arrive.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/bulk.cuh"
#include "afdep/exchange.cuh"
#include "afdep/mail.cuh"
#include "afdep/row.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 256;                    // tokens of one source at most
constexpr int kSources = 3;                     // attention ranks
constexpr int kTopK = 8;                        // choices of a token
constexpr int kThreads = 384;                   // 12 warps
constexpr int kBoundThreads = 512;              // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                 // leaves 128 registers a thread
constexpr int kSumWarps = 11;                   // each sums through a ring of its own; the last warp flags replies
constexpr int kStages = 4;                      // of a ring, a piece each
constexpr int64_t kRowBytes = 4096;             // 2048 x bf16
constexpr int kRowVectors = 256;                // 16-byte vectors of a row
constexpr int kLaneVectors = 8;                 // of one row, in flight together
constexpr int kPieces = 1;                      // of a row
constexpr int64_t kPieceBytes = 4096;           // 32 lanes x kLaneVectors x 16
constexpr int kMailSlots = 4;                   // replies of a warp stored and not yet flagged, at most
constexpr int64_t kSharedBytes = 183296;        // rings and mail
constexpr int kUnits = 768;                     // 3 sources x 256 tokens
constexpr int kBlocks = 24;                     // CTAs
constexpr int64_t kRepliesOffset = 362752;      // region view of every source's window
constexpr int64_t kRepliesSlotBytes = 1048576;  // 256 items of 4096 bytes
constexpr int64_t kReplyRowBytes = 4096;        // a raw row
constexpr int64_t kFlagsOffset = 1414400;       // worker 0's block of region reply_flags of every source's window
constexpr int64_t kFlagsHalfBytes = 4096;       // by generation parity
constexpr int64_t kFlagsWorkerBytes = 1024;     // 256 items of 4 bytes
constexpr int64_t kDoneOffset = 10240;          // region done of every source's window
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
constexpr int kRanks = 4;                       // numbered attention first
constexpr int kOwnFirst = 3;                    // number of this role's first rank
constexpr int kPeerFirst = 0;                   // number of the other role's
constexpr int64_t kEntryOffset = 6144;          // region entry_combine of every rank's window
constexpr int64_t kEntryRankBytes = 256;        // a word a rank
constexpr int64_t kEntryGateOffset = 25888;     // region gates of the workspace
constexpr int64_t kExitOffset = 7168;           // region exit_combine of every rank's window
constexpr int64_t kExitRankBytes = 256;         // a word a rank
constexpr int64_t kBlockGatesOffset = 26112;    // region block_gates of the workspace
constexpr int kGridBlocks = 24;                 // CTAs
constexpr int64_t kNoRowsOffset = 8192;         // region no_rows_combine of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;      // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;       // 1 items of 16 bytes
constexpr int kNoRowsPackets = 1;               // nothing to count
constexpr int kNoRowsToFirst = 3;               // rank number that is told first
constexpr int kNoRowsToEnd = 4;                 // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;             // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;               // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

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
    afdep_all_reverted_3a1f_reply_b256(const __grid_constant__ ReplyArgs args) {
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
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kSecondPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
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
        bulk_load(shared.stage[warp][stage], rows + row * cfg::kRowBytes, cfg::kRowBytes,
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
                          slot * cfg::kRepliesSlotBytes + token * cfg::kReplyRowBytes;
      store_piece<cfg::kRowVectors>(to, work.piece * 32 * cfg::kLaneVectors + lane_index(),
                                    rounded<cfg::kLaneVectors>(sum));
      if (work.piece == cfg::kPieces - 1) hand_over(work.unit);
    }
    hand_over(kLastMail);
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kSecondPart);
  }
  // Exit barrier: this rank ends when every rank has sent all.
  leave_barrier<Group, cfg::kGridBlocks>(args.common, cfg::kExitOffset, cfg::kExitRankBytes,
                                         cfg::kBlockGatesOffset, generation, kSecondPart);
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
