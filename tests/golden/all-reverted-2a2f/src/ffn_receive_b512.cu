// afdep: all-reverted-2a2f | ffn | receive | bucket 512 | bulk
// Sums the counts of all slices, ranks the choices and waits for the flags of the rows' chunks;
// expand takes the rows out of the inbox.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/slice.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 512;                      // tokens of one source at most
constexpr int kSources = 2;                       // attention ranks
constexpr int kUnits = 1024;                      // 2 sources x 512 tokens
constexpr int kTopK = 8;                          // choices of a token
constexpr int kLocalExperts = 64;                 // 128 experts over 2 workers
constexpr int kAlignment = 1;                     // rows; an expert starts at a multiple
constexpr int kThreads = 384;                     // 12 warps
constexpr int kBoundThreads = 640;                // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                   // leaves 96 registers a thread
constexpr int kWarps = 12;                        // a CTA
constexpr int64_t kSharedBytes = 9520;            // the prefix table
constexpr int kOwnUnits = 43;                     // 1024 units over 24 CTAs
constexpr int kWarpUnits = 4;                     // of them, at most
constexpr int kSourceSlices = 24;                 // dispatch CTAs of a source
constexpr int kSliceTokens = 22;                  // tokens of one of them
constexpr int kOwnSlices = 4;                     // that a CTA's units touch at most
constexpr int kCopyWarps = 12;                    // of dispatch: token t of a slice is warp t % kCopyWarps's
constexpr int kChunkRows = 1;                     // rows of a dispatch warp under one release flag
constexpr int kWarpChunks = 2;                    // chunks of a dispatch warp
constexpr int kSliceFlags = 24;                   // of the chunks of its copy warps
constexpr int kCountBatch = 2;                    // count packets of a lane in flight, of 528 in all
constexpr int64_t kCountsOffset = 22552576;       // region counts of this rank's window
constexpr int64_t kCountsHalfBytes = 17408;       // by generation parity
constexpr int64_t kCountsSourceBytes = 4352;      // 24 items of 176 bytes
constexpr int64_t kChoicesOffset = 22587392;      // region choices of this rank's window
constexpr int64_t kChoicesHalfBytes = 131072;     // by generation parity
constexpr int64_t kChoicesSourceBytes = 32768;    // 512 items of 64 bytes
constexpr int64_t kChoicesTokenBytes = 64;        // 8 a choice, in units of 16
constexpr int64_t kChoiceFlagsOffset = 22849536;  // region choice_flags of this rank's window
constexpr int64_t kChoiceFlagsHalfBytes = 1024;   // by generation parity
constexpr int64_t kChoiceFlagsSourceBytes = 256;  // 24 items of 4 bytes
constexpr int64_t kFlagsOffset = 22851584;        // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 9216;         // by generation parity
constexpr int64_t kFlagsSourceBytes = 2304;       // 576 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;            // region unit_rows of the workspace
constexpr int kRanks = 4;                         // numbered attention first
constexpr int kOwnFirst = 2;                      // number of this role's first rank
constexpr int kPeerFirst = 0;                     // number of the other role's
constexpr int64_t kEntryOffset = 0;               // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;          // a word a rank
constexpr int64_t kEntryGateOffset = 32768;       // region gates of the workspace
constexpr int64_t kExitOffset = 1024;             // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;           // a word a rank
constexpr int64_t kNoRowsOffset = 2048;           // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;        // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;         // 11 items of 16 bytes
constexpr int kNoRowsPackets = 11;                // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;                 // rank number that is told first
constexpr int kNoRowsToEnd = 4;                   // this rank has no rows
constexpr int kNoRowsFromFirst = 2;               // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;                 // rows come from the other role alone
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

struct Shared {
  int32_t row[cfg::kOwnUnits][cfg::kTopK];  // of each own unit, kNoRow for none
  PrefixTable<cfg::kLocalExperts, cfg::kSources * cfg::kSourceSlices, cfg::kOwnSlices> prefix;
};
static_assert(sizeof(Shared) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_all_reverted_2a2f_receive_b512(const __grid_constant__ ReceiveArgs args) {
  Shared& shared = shared_memory<Shared>();
  const int warp = warp_index();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  // Entry barrier: every rank has come here before any goes on.
  pass_barrier<Group>(args.common, cfg::kEntryOffset, cfg::kEntryRankBytes, cfg::kEntryGateOffset,
                      generation, kPhaseEntry, kFirstPart);
  // Ranks that have no rows for each other say so, as if each held experts for the other.
  const int64_t no_rows = cfg::kNoRowsOffset + half_of(generation) * cfg::kNoRowsHalfBytes;
  if (block_index() == 0 && warp_index() == 0) {
    send_no_rows<Group, cfg::kNoRowsToFirst, cfg::kNoRowsToEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation);
  }
  const int first_expert = static_cast<int>(args.common.index) * cfg::kLocalExperts;
  const int first_unit = block_index() * cfg::kOwnUnits;
  const int first_slice = first_unit / cfg::kBucket * cfg::kSourceSlices +
                          first_unit % cfg::kBucket / cfg::kSliceTokens;

  read_counts<cfg::kSourceSlices, cfg::kThreads, cfg::kCountBatch>(
      args.common, args.common.window + cfg::kCountsOffset + half * cfg::kCountsHalfBytes,
      cfg::kCountsSourceBytes, generation, shared.prefix);
  sync_block();
  sum_counts<cfg::kThreads>(shared.prefix, first_slice);
  sync_block();
  if (warp == 0) place_experts<cfg::kAlignment>(shared.prefix);
  sync_block();

  if (block_index() == 0) publish_ends<cfg::kThreads>(shared.prefix, args.ends, args.counts);

  const uint8_t* const choices =
      args.common.window + cfg::kChoicesOffset + half * cfg::kChoicesHalfBytes;
  const uint8_t* const choice_flags =
      args.common.window + cfg::kChoiceFlagsOffset + half * cfg::kChoiceFlagsHalfBytes;
  const uint8_t* const flags = args.common.window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes;

  // The choices of the slices that this block's units touch.
  for (int slice = thread_index(); slice < cfg::kOwnSlices; slice += cfg::kThreads) {
    const int source = (first_slice + slice) / cfg::kSourceSlices;
    if (source >= cfg::kSources) continue;
    const int source_slice = (first_slice + slice) % cfg::kSourceSlices;
    // Published by dispatch of `source`, after the slice's choices.
    shared.prefix.ready[slice] = await_flag_at(
        args.common, choice_flags + source * cfg::kChoiceFlagsSourceBytes + source_slice * 4,
        generation,
        {kPhaseTable, static_cast<uint32_t>(source), static_cast<uint32_t>(source_slice)});
  }
  sync_block();
  // First the rows of this warp's units, which are warp, warp + kWarps, ... of the block's: a lane
  // a choice.
#pragma unroll 4
  for (int i = lane_index(); i < cfg::kWarpUnits * cfg::kTopK; i += 32) {
    const int own = warp + i / cfg::kTopK * cfg::kWarps;
    const int k = i % cfg::kTopK;
    const int unit = first_unit + own;
    if (own >= cfg::kOwnUnits || unit >= cfg::kUnits) continue;
    const int source = unit / cfg::kBucket;
    const int token = unit % cfg::kBucket;
    const int own_slice = source * cfg::kSourceSlices + token / cfg::kSliceTokens - first_slice;
    const uint8_t* const choice =
        choices + source * cfg::kChoicesSourceBytes + token * cfg::kChoicesTokenBytes + k * 8;
    // Choices whose wait gave up may be under way, or never come.
    const bool there = shared.prefix.ready[own_slice] != 0;
    const uint32_t packed = there ? load_word(choice) : kNoChoice;
    const uint32_t weight = there ? load_word(choice + 4) : 0;
    const int row = row_of_choice(shared.prefix, own_slice, first_expert, packed);
    shared.row[own][k] = row;
    store_word(args.common.workspace + cfg::kUnitRowsOffset +
                   (static_cast<int64_t>(unit) * cfg::kTopK + k) * 4,
               static_cast<uint32_t>(row));
    if (row != kNoRow) store_word(&args.row_weights[row], weight);
  }
  sync_warp();  // every lane sees the rows
  // Exit barrier: this kernel ends, and its epilogue reads rows, when every rank has sent all.
  end_behind_barrier<Group>(args.common, cfg::kExitOffset, cfg::kExitRankBytes, generation, kFirstPart);

  // Then the flags of the payload.
  const auto flag_of = [&](int unit) {
    const int slice_token = unit % cfg::kBucket % cfg::kSliceTokens;
    const int flag = unit % cfg::kBucket / cfg::kSliceTokens * cfg::kSliceFlags +
                     slice_token % cfg::kCopyWarps * cfg::kWarpChunks +
                     slice_token / cfg::kCopyWarps / cfg::kChunkRows;
    return flags + unit / cfg::kBucket * cfg::kFlagsSourceBytes + flag * 4;
  };
  for (int first = warp; first < cfg::kOwnUnits; first += 32 * cfg::kWarps) {
    const int own = first + lane_index() * cfg::kWarps;
    const int unit = first_unit + own;
    if (own >= cfg::kOwnUnits || unit >= cfg::kUnits) continue;
    bool wanted = false;
    for (int k = 0; k < cfg::kTopK; ++k) wanted |= shared.row[own][k] != kNoRow;
    if (!wanted) continue;
    // Published by dispatch of the unit's source, after the rows of the chunk.
    await_flag_at(args.common, flag_of(unit), generation,
                  {kPhaseRow, static_cast<uint32_t>(unit / cfg::kBucket),
                   static_cast<uint32_t>(unit % cfg::kBucket)});
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  mark_started(args.common, generation);
}
