// afdep: two-workers-2a2f | ffn | receive | bucket 2048 | bulk
// Sums the counts of all slices, then each warp moves rows from the inbox to the rows of the local
// experts that they chose, through a ring of shared-memory stages, as the rows' chunks are flagged.
#include "afdep/abi.h"
#include "afdep/bulk.cuh"
#include "afdep/exchange.cuh"
#include "afdep/slice.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 2048;                     // tokens of one source at most
constexpr int kSources = 2;                       // attention ranks
constexpr int kUnits = 4096;                      // 2 sources x 2048 tokens
constexpr int kTopK = 8;                          // choices of a token
constexpr int kLocalExperts = 64;                 // 128 experts over 2 workers
constexpr int kAlignment = 1;                     // rows; an expert starts at a multiple
constexpr int kThreads = 384;                     // 12 warps
constexpr int kBoundThreads = 640;                // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                   // leaves 96 registers a thread
constexpr int kWarps = 12;                        // each moves rows through a ring of its own
constexpr int kStages = 4;                        // of a ring, a row each
constexpr int kLead = 2;                          // rows on their way in while an older one goes out
constexpr int64_t kRowBytes = 4096;               // 2048 x bf16
constexpr int64_t kSharedBytes = 210800;          // rings and the prefix table
constexpr int kOwnUnits = 171;                    // 4096 units over 24 CTAs
constexpr int kWarpUnits = 15;                    // of them, at most
constexpr int kSourceSlices = 24;                 // dispatch CTAs of a source
constexpr int kSliceTokens = 86;                  // tokens of one of them
constexpr int kOwnSlices = 4;                     // that a CTA's units touch at most
constexpr int kCopyWarps = 12;                    // of dispatch: token t of a slice is warp t % kCopyWarps's
constexpr int kChunkRows = 2;                     // rows of a dispatch warp under one release flag
constexpr int kWarpChunks = 4;                    // chunks of a dispatch warp
constexpr int kSliceFlags = 48;                   // of the chunks of its copy warps
constexpr int kCountBatch = 2;                    // count packets of a lane in flight, of 528 in all
constexpr int64_t kCountsOffset = 36503552;       // region counts of this rank's window
constexpr int64_t kCountsHalfBytes = 8704;        // by generation parity
constexpr int64_t kCountsSourceBytes = 4352;      // 24 items of 176 bytes
constexpr int64_t kRowsOffset = 2949120;          // region rows of this rank's window
constexpr int64_t kRowsHalfBytes = 16777216;      // by generation parity
constexpr int64_t kRowsSourceBytes = 8388608;     // 2048 items of 4096 bytes
constexpr int64_t kInboxRowBytes = 4096;          // a raw row
constexpr int64_t kChoicesOffset = 36520960;      // region choices of this rank's window
constexpr int64_t kChoicesHalfBytes = 262144;     // by generation parity
constexpr int64_t kChoicesSourceBytes = 131072;   // 2048 items of 64 bytes
constexpr int64_t kChoicesTokenBytes = 64;        // 8 a choice, in units of 16
constexpr int64_t kChoiceFlagsOffset = 37045248;  // region choice_flags of this rank's window
constexpr int64_t kChoiceFlagsHalfBytes = 512;    // by generation parity
constexpr int64_t kChoiceFlagsSourceBytes = 256;  // 24 items of 4 bytes
constexpr int64_t kFlagsOffset = 37046272;        // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 9216;         // by generation parity
constexpr int64_t kFlagsSourceBytes = 4608;       // 1152 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;            // region unit_rows of the workspace
}  // namespace cfg

struct Shared {
  alignas(128) uint8_t stage[cfg::kWarps][cfg::kStages][cfg::kRowBytes];
  BulkBarrier loaded[cfg::kWarps][cfg::kStages];
  int32_t moving[cfg::kWarps][cfg::kStages];  // the own unit whose row is in the stage
  int32_t row[cfg::kOwnUnits][cfg::kTopK];    // of each own unit, kNoRow for none
  PrefixTable<cfg::kLocalExperts, cfg::kSources * cfg::kSourceSlices, cfg::kOwnSlices> prefix;
};
static_assert(sizeof(Shared) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_two_workers_2a2f_receive_b2048(const __grid_constant__ ReceiveArgs args) {
  Shared& shared = shared_memory<Shared>();
  const int warp = warp_index();
  if (thread_index() == 0) {
    for (int w = 0; w < cfg::kWarps; ++w) {
      for (int stage = 0; stage < cfg::kStages; ++stage) init_barrier(shared.loaded[w][stage]);
    }
    publish_barriers();
  }
  sync_block();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
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

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(shared.prefix, args.ends, args.counts);

  const uint8_t* const inbox = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes;
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

  // Then the payload. Lane j looks out for the j-th of 32 units; whichever has arrived is moved
  // next.
  const auto flag_of = [&](int unit) {
    const int slice_token = unit % cfg::kBucket % cfg::kSliceTokens;
    const int flag = unit % cfg::kBucket / cfg::kSliceTokens * cfg::kSliceFlags +
                     slice_token % cfg::kCopyWarps * cfg::kWarpChunks +
                     slice_token / cfg::kCopyWarps / cfg::kChunkRows;
    return flags + unit / cfg::kBucket * cfg::kFlagsSourceBytes + flag * 4;
  };
  int loads = 0;   // rows that have been sent on their way into a stage
  int stores = 0;  // and on their way out of it
#pragma unroll 1
  for (int first = warp; first < cfg::kOwnUnits; first += 32 * cfg::kWarps) {
    const int watched = first + lane_index() * cfg::kWarps;
    bool wanted = false;
    if (watched < cfg::kOwnUnits && first_unit + watched < cfg::kUnits) {
      for (int k = 0; k < cfg::kTopK; ++k) wanted |= shared.row[watched][k] != kNoRow;
    }
    uint32_t left = lanes_that(wanted);
    uint32_t arrived = 0;
    while (left != 0) {
      if (arrived == 0) {
        const bool mine = (left >> lane_index() & 1u) != 0;
        arrived = lanes_that(mine && flag_is(flag_of(first_unit + watched), generation));
        if (arrived == 0 && stores < loads) {
          // Nothing new: meanwhile a row that has been on its way in goes out.
          if (lane_index() == 0) {
            const int stage = stores % cfg::kStages;
            await_barrier(shared.loaded[warp][stage], static_cast<uint32_t>(stores / cfg::kStages) & 1u);
            const int own = shared.moving[warp][stage];
            for (int k = 0; k < cfg::kTopK; ++k) {
              const int64_t row = shared.row[own][k];
              if (row == kNoRow) continue;
              bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
            }
            bulk_commit();
          }
          ++stores;
          continue;
        }
        if (arrived == 0) {
          // Published by dispatch of the unit's source, after the rows of the chunk.
          const int unit = first_unit + first + lowest_bit(left) * cfg::kWarps;
          const Awaited awaited{kPhaseRow, static_cast<uint32_t>(unit / cfg::kBucket),
                                static_cast<uint32_t>(unit % cfg::kBucket)};
          const bool here = await_flag_by_warp(args.common, flag_of(unit), generation, awaited);
          arrived = here ? left & (0u - left) : 0;
          if (!here) left &= left - 1;
          if (!here) continue;
        }
        sync_warp();                          // the lanes' acquires come before lane 0's fence,
        if (lane_index() == 0) fence_bulk();  // and that before its copies read the inbox
      }
      const int own = first + lowest_bit(arrived) * cfg::kWarps;
      left &= ~(arrived & (0u - arrived));
      arrived &= arrived - 1;
      if (lane_index() == 0) {
        const int unit = first_unit + own;
        const int stage = loads % cfg::kStages;
        // What left this stage has been read out of it: at most so many stores came after it.
        bulk_await_read<cfg::kStages - 1 - cfg::kLead>();
        bulk_load(shared.stage[warp][stage],
                  inbox + unit / cfg::kBucket * cfg::kRowsSourceBytes +
                      unit % cfg::kBucket * cfg::kInboxRowBytes,
                  cfg::kRowBytes, shared.loaded[warp][stage]);
        shared.moving[warp][stage] = own;
      }
      ++loads;
      if (loads - stores > cfg::kLead) {
        if (lane_index() == 0) {
          const int stage = stores % cfg::kStages;
          await_barrier(shared.loaded[warp][stage], static_cast<uint32_t>(stores / cfg::kStages) & 1u);
          const int own = shared.moving[warp][stage];
          for (int k = 0; k < cfg::kTopK; ++k) {
            const int64_t row = shared.row[own][k];
            if (row == kNoRow) continue;
            bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
          }
          bulk_commit();
        }
        ++stores;
      }
    }
  }
  for (; stores < loads; ++stores) {
    if (lane_index() == 0) {
      const int stage = stores % cfg::kStages;
      await_barrier(shared.loaded[warp][stage], static_cast<uint32_t>(stores / cfg::kStages) & 1u);
      const int own = shared.moving[warp][stage];
      for (int k = 0; k < cfg::kTopK; ++k) {
        const int64_t row = shared.row[own][k];
        if (row == kNoRow) continue;
        bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
      }
      bulk_commit();
    }
  }
  if (lane_index() == 0) bulk_await<0>();  // the rows are written before the kernel ends
  mark_started(args.common, generation);
}
