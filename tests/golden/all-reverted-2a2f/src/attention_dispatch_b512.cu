// afdep: all-reverted-2a2f | attention | dispatch | bucket 512 | bulk
// Each block owns a slice of the tokens. Its copy warps rank the slice's choices and send them, with
// their counts ahead; then they move rows through rings of shared-memory stages straight into the
// workers' inboxes. The last warp says with a flag a row that it is there.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/bulk.cuh"
#include "afdep/exchange.cuh"
#include "afdep/mail.cuh"
#include "afdep/slice.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 512;                    // tokens of one source at most
constexpr int kTopK = 8;                        // choices of a token
constexpr int kExperts = 128;                   // ids are -1 or less than this
constexpr int kExpertsPerWorker = 64;           // 128 experts over 2 workers
constexpr int kWorkers = 2;                     // FFN ranks
constexpr int kThreads = 416;                   // 13 warps
constexpr int kBoundThreads = 640;              // launched with 416; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                 // leaves 96 registers a thread
constexpr int kCopyWarps = 12;                  // send choices, then rows by a ring each; the last warp sends counts
constexpr int kStages = 4;                      // of a ring, a row each
constexpr int64_t kRowBytes = 4096;             // 2048 x bf16
constexpr int64_t kSharedBytes = 204464;        // rings and the slice's table
constexpr int kRouteBatch = 1;                  // ids of a lane in flight
constexpr int kSliceTokens = 22;                // 512 tokens over 24 CTAs
constexpr int kMailSlots = 4;                   // rows of a warp arrived and not yet flagged, at most
constexpr int kCountPackets = 11;               // of a slice for one worker: six experts each
constexpr int64_t kCountsOffset = 22552576;     // region counts of every worker's window
constexpr int64_t kCountsHalfBytes = 17408;     // by generation parity
constexpr int64_t kCountsSourceBytes = 4352;    // 24 items of 176 bytes
constexpr int64_t kRowsOffset = 5775360;        // region rows of every worker's window
constexpr int64_t kRowsHalfBytes = 8388608;     // by generation parity
constexpr int64_t kRowsSourceBytes = 2097152;   // 512 items of 4096 bytes
constexpr int64_t kInboxRowBytes = 4096;        // a raw row
constexpr int64_t kChoicesOffset = 22587392;    // region choices of every worker's window
constexpr int64_t kChoicesHalfBytes = 196608;   // by generation parity
constexpr int64_t kChoicesSourceBytes = 49152;  // 512 items of 96 bytes
constexpr int kChoicePackets = 6;               // of a token: three choices or weights each
constexpr int64_t kChoicesTokenBytes = 96;      // 6 packets
constexpr int64_t kFlagsOffset = 22980608;      // region row_flags of every worker's window
constexpr int64_t kFlagsHalfBytes = 8192;       // by generation parity
constexpr int64_t kFlagsSourceBytes = 2048;     // 512 items of 4 bytes
constexpr int64_t kDoneOffset = 8192;           // region done of this rank's window
constexpr int64_t kDestinationsOffset = 0;      // region destinations of the workspace
constexpr int kRanks = 4;                       // numbered attention first
constexpr int kOwnFirst = 0;                    // number of this role's first rank
constexpr int kPeerFirst = 2;                   // number of the other role's
constexpr int64_t kEntryOffset = 0;             // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;        // a word a rank
constexpr int64_t kEntryGateOffset = 4096;      // region gates of the workspace
constexpr int64_t kExitOffset = 1024;           // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;         // a word a rank
constexpr int64_t kBlockGatesOffset = 4352;     // region block_gates of the workspace
constexpr int kGridBlocks = 24;                 // CTAs
constexpr int64_t kNoRowsOffset = 2048;         // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;      // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;       // 11 items of 16 bytes
constexpr int kNoRowsPackets = 11;              // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;               // rank number that is told first
constexpr int kNoRowsToEnd = 2;                 // rows go to the other role alone
constexpr int kNoRowsFromFirst = 0;             // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;               // nobody has rows for this rank
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

using Slice = SliceTable<cfg::kExperts, cfg::kSliceTokens, cfg::kTopK, cfg::kCopyWarps>;

struct Shared {
  alignas(128) uint8_t stage[cfg::kCopyWarps][cfg::kStages][cfg::kRowBytes];
  BulkBarrier loaded[cfg::kCopyWarps][cfg::kStages];
  Mailbox<cfg::kMailSlots> sent[cfg::kCopyWarps];  // tokens whose rows are in the inboxes
  Slice slice;
};
static_assert(sizeof(Shared) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_dispatch_b512(const __grid_constant__ DispatchArgs args) {
  Shared& shared = shared_memory<Shared>();
  const int warp = warp_index();
  if (warp < cfg::kCopyWarps) {
    if (lane_index() < cfg::kStages) init_barrier(shared.loaded[warp][lane_index()]);
    init_mailbox(shared.sent[warp]);
  }
  publish_barriers();
  clear_counts<cfg::kThreads>(shared.slice);
  sync_block();
  await_previous_kernel();  // the collect of the exchange before this one
  release_next_kernel();    // the collect may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kFirstPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
  const int first_token = block_index() * cfg::kSliceTokens;
  const int all_tokens = static_cast<int>(args.tokens);
  const int after = all_tokens - first_token;  // may be negative: an empty slice
  const int tokens = after < cfg::kSliceTokens ? after : cfg::kSliceTokens;
  const uint8_t* const x =
      static_cast<const uint8_t*>(args.x) + static_cast<int64_t>(first_token) * cfg::kRowBytes;

  // This source's place in every worker's inbox.
  const uint32_t half = half_of(generation);
  const int64_t counts = cfg::kCountsOffset + half * cfg::kCountsHalfBytes +
                         args.common.index * cfg::kCountsSourceBytes;
  const int64_t rows = cfg::kRowsOffset + half * cfg::kRowsHalfBytes +
                       args.common.index * cfg::kRowsSourceBytes +
                       first_token * cfg::kInboxRowBytes;
  const int64_t choices = cfg::kChoicesOffset + half * cfg::kChoicesHalfBytes +
                          args.common.index * cfg::kChoicesSourceBytes +
                          first_token * cfg::kChoicesTokenBytes;
  const int64_t flags = cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes +
                        args.common.index * cfg::kFlagsSourceBytes + first_token * 4;

  if (warp == cfg::kCopyWarps) {
    // Worker w may still read this half for generation - 2: its done word says when it has ended.
    // The block barriers below hand that on to the warps that write.
    await_all_done<cfg::kWorkers>(args.common, args.common.window + cfg::kDoneOffset, generation);
  } else {
    // A warp's segment of the slice, kStepTokens tokens a step: lane g * kTopK + k holds choice k of
    // the step's token g. The ids are on the path of every rank's first row, so they are asked for
    // before the rows are.
    constexpr int kStepTokens = 32 / cfg::kTopK;
    const int group = lane_index() / cfg::kTopK;
    const int k = lane_index() % cfg::kTopK;
    const auto token_of = [&](int step) {  // of the slice, negative for none
      const int of_segment = step * kStepTokens + group;
      const int token = warp * Slice::kSegmentTokens + of_segment;
      const bool held = group < kStepTokens && of_segment < Slice::kSegmentTokens &&
                        token < cfg::kSliceTokens;
      return held ? token : -1;
    };
    int64_t choice[cfg::kRouteBatch];
    uint32_t weight[cfg::kRouteBatch];
    const auto load_routes = [&](int first) {
#pragma unroll
      for (int i = 0; i < cfg::kRouteBatch; ++i) {
        const int token = token_of(first + i);
        const int from = token < 0 ? all_tokens : first_token + token;
        choice[i] = load_choice_of<int64_t, cfg::kTopK>(args.ids, from, k, all_tokens);
        weight[i] = load_weight_of<cfg::kTopK>(args.weights, from, k, all_tokens);
      }
    };
    load_routes(0);
    // Copy warp w takes tokens w, w + kCopyWarps, ... of the slice. Its first rows travel while the
    // routes are read.
    if (lane_index() == 0) {
      fence_bulk_global();  // whoever wrote x used ordinary stores
      for (int i = 0; i < cfg::kStages; ++i) {
        const int token = warp + i * cfg::kCopyWarps;
        if (token < tokens) {
          bulk_load(shared.stage[warp][i], x + token * cfg::kRowBytes, cfg::kRowBytes,
                    shared.loaded[warp][i]);
        }
      }
    }
#pragma unroll 1
    for (int first = 0; first * kStepTokens < Slice::kSegmentTokens; first += cfg::kRouteBatch) {
      if (first != 0) load_routes(first);
#pragma unroll
      for (int i = 0; i < cfg::kRouteBatch; ++i) {
        const int token = token_of(first + i);
        // Beyond this source's tokens lie other slices' and nobody's: they have no experts here.
        const int expert = checked_choice<cfg::kExperts, RouteCheck::kReport>(
            args.common, choice[i], Choice{first_token + token, k, group}, generation);
        const Destinations to = destinations_among<cfg::kExpertsPerWorker, cfg::kTopK>(expert);
        rank_choices(shared.slice, warp, token < 0 ? -1 : token * cfg::kTopK + k, expert,
                     weight[i]);
        if (token < 0 || k != 0) continue;
        shared.slice.destinations[token] = to.mask;
        if (first_token + token < cfg::kBucket) {
          store_destinations(args.common.workspace + cfg::kDestinationsOffset, first_token + token,
                             to);
        }
      }
    }
  }
  sync_block();
  sum_segments<cfg::kThreads>(shared.slice);
  sync_block();

  if (warp == cfg::kCopyWarps) {
    for (int i = lane_index(); i < cfg::kWorkers * cfg::kCountPackets; i += 32) {
      const int worker = i / cfg::kCountPackets;
      const int packet = i % cfg::kCountPackets;
      const Packet p = counts_packet<cfg::kExpertsPerWorker>(
          shared.slice, worker * cfg::kExpertsPerWorker, packet, generation);
      store_packet(args.common.peer[worker] + counts +
                       (block_index() * cfg::kCountPackets + packet) * kPacketBytes,
                   p);  // awaited by receive
    }
    flag_mail(shared.sent, [&](int token) {
      for (uint64_t left = shared.slice.destinations[token]; left != 0; left &= left - 1) {
        store_flag_at(args.common.peer[lowest_bit(left)] + flags + token * 4,
                      generation);  // awaited by receive
      }
    });
  } else {
    // Every worker gets the choices of every token, so that none reads what an earlier exchange
    // left.
#pragma unroll 1
    for (int i = thread_index(); i < cfg::kSliceTokens * cfg::kChoicePackets;
         i += cfg::kCopyWarps * 32) {
      const int token = i / cfg::kChoicePackets;
      if (first_token + token >= cfg::kBucket) continue;
      const Packet p =
          choice_packet(shared.slice, token, i % cfg::kChoicePackets, generation);
      const int64_t place = choices + i * kPacketBytes;
      store_packet(args.common.peer[0] + place, p);
      store_packet(args.common.peer[1] + place, p);
    }

    if (lane_index() == 0) {
      uint32_t sent = 0;  // of this warp's rows
#pragma unroll 1
      for (int token = warp; token < tokens; token += cfg::kCopyWarps) {
        const uint32_t stage = sent % cfg::kStages;
        await_barrier(shared.loaded[warp][stage], sent / cfg::kStages & 1u);
        for (uint64_t left = shared.slice.destinations[token]; left != 0; left &= left - 1) {
          bulk_store(args.common.peer[lowest_bit(left)] + rows + token * cfg::kInboxRowBytes,
                     shared.stage[warp][stage], cfg::kRowBytes);
        }
        bulk_commit();
        // One row of a warp at a time is on its way out: a longer queue sends none of them sooner,
        // and each would wait in it.
        bulk_await<0>();
        send_mail(shared.sent[warp], sent++, token);
        const int next = token + cfg::kStages * cfg::kCopyWarps;
        if (next < tokens) {
          bulk_load(shared.stage[warp][stage], x + next * cfg::kRowBytes, cfg::kRowBytes,
                    shared.loaded[warp][stage]);
        }
      }
      send_mail(shared.sent[warp], sent, kLastMail);
    }
    sync_warp();
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  // Exit barrier: this rank ends when every rank has sent all.
  leave_barrier<Group, cfg::kGridBlocks>(args.common, cfg::kExitOffset, cfg::kExitRankBytes,
                                         cfg::kBlockGatesOffset, generation, kFirstPart);
  mark_started(args.common, generation);
}
