// afdep: padded-tail-2a2f | ffn | receive | bucket 1024 | bulk
// Sums the counts of all slices. Then the warps of a block take its units as they become free, about
// in the order in which they arrive, and move their rows from the inbox to the rows of the local
// experts that they chose, through a ring of shared-memory stages each.
#include "afdep/abi.h"
#include "afdep/bulk.cuh"
#include "afdep/exchange.cuh"
#include "afdep/slice.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 1024;                   // tokens of one source at most
constexpr int kSources = 2;                     // attention ranks
constexpr int kTopK = 4;                        // choices of a token
constexpr int kLocalExperts = 64;               // 128 experts over 2 workers
constexpr int kAlignment = 16;                  // rows; an expert starts at a multiple
constexpr int kThreads = 288;                   // 9 warps
constexpr int kBoundThreads = 640;              // launched with 288; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                 // leaves 96 registers a thread
constexpr int kBlocks = 48;                     // CTAs
constexpr int kWarps = 9;                       // each moves rows through a ring of its own
constexpr int kStages = 4;                      // of a ring, a row each
constexpr int kLead = 2;                        // rows on their way in while an older one goes out
constexpr int64_t kRowBytes = 5760;             // 2880 x bf16
constexpr int kRowWords = 1440;                 // two BF16 elements a word
constexpr int64_t kSharedBytes = 216512;        // rings and the prefix table
constexpr int kSourceSlices = 16;               // dispatch CTAs of a source
constexpr int kSliceTokens = 64;                // tokens of one of them
constexpr int kOwnUnits = 38;                   // of 43 a CTA (32 slices x 64 tokens / 48); it shares the others
constexpr int kGroupUnits = 5;                  // that a warp takes at once
constexpr int kSingleOwn = 38;                  // from here on it takes one, so that warps end together
constexpr int kWidePrefix = 0;                  // counts of more than 16 bits
constexpr int kCountBatch = 2;                  // count packets of a lane in flight, of 352 in all
constexpr int kChoiceBatch = 1;                 // choice packets of a lane in flight, of 152 in all
constexpr int64_t kCountsOffset = 23871488;     // region counts of this rank's window
constexpr int64_t kCountsHalfBytes = 5632;      // by generation parity
constexpr int64_t kCountsSourceBytes = 2816;    // 16 items of 176 bytes
constexpr int64_t kRowsOffset = 278528;         // region rows of this rank's window
constexpr int64_t kRowsHalfBytes = 11796480;    // by generation parity
constexpr int64_t kRowsSourceBytes = 5898240;   // 1024 items of 5760 bytes
constexpr int64_t kInboxRowBytes = 5760;        // a raw row
constexpr int64_t kChoicesOffset = 23882752;    // region choices of this rank's window
constexpr int64_t kChoicesHalfBytes = 131072;   // by generation parity
constexpr int64_t kChoicesSourceBytes = 65536;  // 1024 items of 64 bytes
constexpr int64_t kChoicesTokenBytes = 64;      // 4 packets
constexpr int64_t kFlagsOffset = 24144896;      // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 8192;       // by generation parity
constexpr int64_t kFlagsSourceBytes = 4096;     // 1024 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
}  // namespace cfg

struct Shared {
  alignas(128) uint8_t stage[cfg::kWarps][cfg::kStages][cfg::kRowBytes];
  BulkBarrier loaded[cfg::kWarps][cfg::kStages];
  int32_t row[cfg::kWarps][cfg::kStages][cfg::kTopK];  // where the row in the stage goes
  UnitChoices<cfg::kOwnUnits + cfg::kWarps, cfg::kTopK> choices;  // and each warp's shared unit
  PrefixTable<cfg::kLocalExperts, cfg::kSources * cfg::kSourceSlices, cfg::kThreads,
              cfg::kWidePrefix>
      prefix;
  uint32_t next_own;  // of the own units, which no warp has taken yet
};
static_assert(sizeof(Shared) <= cfg::kSharedBytes,
              "the plan launches with too little shared memory");

extern "C" __global__ void __launch_bounds__(cfg::kBoundThreads, cfg::kBlocksPerSm)
    afdep_padded_tail_2a2f_receive_b1024(const __grid_constant__ ReceiveArgs args) {
  Shared& shared = shared_memory<Shared>();
  const int warp = warp_index();
  if (lane_index() < cfg::kStages) init_barrier(shared.loaded[warp][lane_index()]);
  publish_barriers();
  await_previous_kernel();  // the reply of the exchange before this one
  release_next_kernel();    // the reply may become resident and wait
  const uint32_t generation = opened_generation(args.common);
  const uint32_t half = half_of(generation);
  const int first_expert = static_cast<int>(args.common.index) * cfg::kLocalExperts;
  const uint8_t* const choices =
      args.common.window + cfg::kChoicesOffset + half * cfg::kChoicesHalfBytes;
  // Units are numbered about in the order in which their rows arrive: number n is token n / slices of
  // a slice, and each number stands for another slice than the one before. The blocks own the first
  // numbers in turn, so that each has some of every slice, whose last may be empty; any that are
  // left are shared.
  constexpr int kSlices = cfg::kSources * cfg::kSourceSlices;
  struct Unit {
    int slice;  // of all sources
    int source;
    int token;    // of the source
    bool exists;  // slices and buckets need not divide alike
  };
  constexpr int kNumbers = kSlices * cfg::kSliceTokens;
  constexpr int kNoUnit = -1;
  int shared_number = kNumbers;  // of the shared unit that this warp has
  // own: of this block's own units; above them, and there are none, the warp's shared unit.
  const auto unit_of = [&](int own) {
    const int number = own < cfg::kOwnUnits ? own * cfg::kBlocks + block_index() : shared_number;
    const int of_slice = number / kSlices;
    Unit unit;
    unit.slice = (number + of_slice) % kSlices;
    unit.source = unit.slice / cfg::kSourceSlices;
    unit.token = unit.slice % cfg::kSourceSlices * cfg::kSliceTokens + of_slice;
    unit.exists = own != kNoUnit && of_slice < cfg::kSliceTokens && unit.token < cfg::kBucket;
    return unit;
  };
  read_counts<cfg::kSourceSlices, cfg::kThreads, cfg::kCountBatch>(
      args.common, args.common.window + cfg::kCountsOffset + half * cfg::kCountsHalfBytes,
      cfg::kCountsSourceBytes, generation, shared.prefix);
  const auto choices_of = [&](const Unit& unit) {
    return choices + unit.source * cfg::kChoicesSourceBytes + unit.token * cfg::kChoicesTokenBytes;
  };
  const auto awaited_choices = [](const Unit& unit) {
    return Awaited{kPhaseTable, static_cast<uint32_t>(unit.source),
                   static_cast<uint32_t>(unit.slice % cfg::kSourceSlices)};
  };
  read_choices<cfg::kOwnUnits, cfg::kThreads, cfg::kChoiceBatch>(
      args.common, generation,
      [&](int own) -> const uint8_t* {
        const Unit unit = unit_of(own);
        return unit.exists ? choices_of(unit) : nullptr;
      },
      [&](int own) { return awaited_choices(unit_of(own)); }, shared.choices);
  if (thread_index() == 0) shared.next_own = 0;
  sync_block();
  sum_parts(shared.prefix);
  sync_block();
  if (warp == 0) {
    sum_totals(shared.prefix);
    place_experts<cfg::kAlignment>(shared.prefix);
  }
  sum_slices(shared.prefix);
  sync_block();

  uint8_t* const out_rows = static_cast<uint8_t*>(args.rows);
  if (block_index() == 0) publish_ends<cfg::kThreads>(shared.prefix, args.ends, args.counts);
  zero_padding<cfg::kThreads, cfg::kBlocks, cfg::kAlignment, cfg::kRowWords>(
      shared.prefix, out_rows, args.row_weights);

  const uint8_t* const inbox = args.common.window + cfg::kRowsOffset + half * cfg::kRowsHalfBytes;
  const uint8_t* const flags = args.common.window + cfg::kFlagsOffset + half * cfg::kFlagsHalfBytes;
  const auto flag_of = [&](const Unit& unit) {
    return flags + unit.source * cfg::kFlagsSourceBytes + unit.token * 4;
  };
  const auto awaited_row = [](const Unit& unit) {
    return Awaited{kPhaseRow, static_cast<uint32_t>(unit.source), static_cast<uint32_t>(unit.token)};
  };
  // A warp makes rows of the choices of a unit, for reply and, lane k choice k's, for itself.
  const auto place_unit = [&](int own, const Unit& unit) {
    const int k = lane_index();
    const uint32_t packed = k < cfg::kTopK ? shared.choices.packed[own][k] : kNoChoice;
    // Of a token whose choices did not all come nothing is known: it has no rows.
    const bool whole = lanes_that(packed == kNoPayload) == 0;
    const int row =
        whole ? row_of_choice(shared.prefix, unit.slice, first_expert, packed) : kNoRow;
    const int64_t place = static_cast<int64_t>(unit.source) * cfg::kBucket + unit.token;
    if (k < cfg::kTopK) {
      store_word(args.common.workspace + cfg::kUnitRowsOffset + (place * cfg::kTopK + k) * 4,
                 static_cast<uint32_t>(row));
      if (row != kNoRow) store_word(&args.row_weights[row], shared.choices.weight[own][k]);
    }
    return row;
  };

  uint32_t loads = 0;   // rows that have been sent on their way into a stage
  uint32_t stores = 0;  // and on their way out of it
  // A warp takes kGroupUnits own units at once, one where few are left, and looks out for all of
  // them: lane u for the u-th.
  int group = cfg::kGroupUnits;
  const auto take_own = [&]() {
    uint32_t taken = 0;
    if (lane_index() == 0) taken = take_shared(shared.next_own, static_cast<uint32_t>(group));
    const int first = static_cast<int>(shuffle(taken, 0));
    return first < cfg::kOwnUnits ? first : kNoUnit;
  };
  // When none is left, it takes shared units, so that blocks end together: how many rows a unit has
  // is a matter of routing, and how fast they move one of the memory.
  bool shares = false;
  const auto take_group = [&]() {
    if (!shares) {
      const int first = take_own();
      if (first != kNoUnit) return first;
      shares = true;
      group = 1;
    }
    uint32_t taken = 0;
    if (lane_index() == 0) taken = take(&args.common.control->units_taken);
    for (; stores < loads; ++stores) {
      // Meanwhile the rows that have been on their way in go out.
      if (lane_index() == 0) {
        const uint32_t stage = stores % cfg::kStages;
        await_barrier(shared.loaded[warp][stage], stores / cfg::kStages & 1u);
        for (int k = 0; k < cfg::kTopK; ++k) {
          const int64_t row = shared.row[warp][stage][k];
          if (row == kNoRow) continue;
          bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
        }
        bulk_commit();
      }
    }
    shared_number = cfg::kOwnUnits * cfg::kBlocks + static_cast<int>(shuffle(taken, 0));
    if (shared_number >= kNumbers) return kNoUnit;
    const int own = cfg::kOwnUnits + warp;
    const Unit unit = unit_of(own);
    sync_warp();  // all lanes are done with the choices of the shared unit before
    if (unit.exists) {
      read_choices_of(args.common, generation, choices_of(unit), awaited_choices(unit), own,
                      shared.choices);
    }
    sync_warp();  // the other lanes' choices
    return own;
  };
#pragma unroll 1
  for (int first = take_group(); first != kNoUnit; first = take_group()) {
    const int watching = lane_index() < group ? first + lane_index() : kNoUnit;
    const Unit watched = unit_of(watching);
    uint32_t left = lanes_that(watched.exists);
    const uint32_t local =
        lanes_that(watched.exists && chooses_local<cfg::kLocalExperts>(shared.choices, watching,
                                                                       first_expert));
    if (first >= cfg::kSingleOwn) group = 1;
    for (uint32_t idle = left & ~local; idle != 0; idle &= idle - 1) {
      const int u = lowest_bit(idle);
      place_unit(first + u, unit_of(first + u));  // reply finds no rows
    }
    left &= local;
    uint32_t arrived = 0;
    while (left != 0) {
      if (arrived == 0) {
        const bool wanted = (left >> lane_index() & 1u) != 0;
        arrived = lanes_that(wanted && flag_is(flag_of(watched), generation));
        if (arrived == 0 && stores < loads) {
          // Nothing new: meanwhile a row that has been on its way in goes out.
          if (lane_index() == 0) {
            const uint32_t stage = stores % cfg::kStages;
            await_barrier(shared.loaded[warp][stage], stores / cfg::kStages & 1u);
            for (int k = 0; k < cfg::kTopK; ++k) {
              const int64_t row = shared.row[warp][stage][k];
              if (row == kNoRow) continue;
              bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
            }
            bulk_commit();
          }
          ++stores;
          continue;
        }
        if (arrived == 0) {
          // Published by dispatch of the unit's source, after the row.
          const int u = lowest_bit(left);
          const Unit unit = unit_of(first + u);
          if (!await_flag_by_warp(args.common, flag_of(unit), generation, awaited_row(unit))) {
            place_unit(first + u, unit);  // reply asks for the rows
            left &= left - 1;
            continue;
          }
          arrived = left & (0u - left);
        }
        sync_warp();                          // the lanes' acquires come before lane 0's fence,
        if (lane_index() == 0) fence_bulk_global();  // and that before its copies read the inbox
      }
      const int u = lowest_bit(arrived);
      left &= ~(arrived & (0u - arrived));
      arrived &= arrived - 1;
      const Unit unit = unit_of(first + u);
      const int row = place_unit(first + u, unit);
      const uint32_t stage = loads % cfg::kStages;
      sync_warp();  // lane 0 has read where the row that was in the stage went
      if (lane_index() < cfg::kTopK) shared.row[warp][stage][lane_index()] = row;
      if (lane_index() == 0) {
        // What left this stage has been read out of it: at most so many stores came after it.
        bulk_await_read<cfg::kStages - 1 - cfg::kLead>();
        bulk_load(shared.stage[warp][stage],
                  inbox + unit.source * cfg::kRowsSourceBytes + unit.token * cfg::kInboxRowBytes,
                  cfg::kRowBytes, shared.loaded[warp][stage]);
      }
      sync_warp();  // lane 0 sees where the row goes
      ++loads;
      if (loads - stores > cfg::kLead) {
        if (lane_index() == 0) {
          const uint32_t stage = stores % cfg::kStages;
          await_barrier(shared.loaded[warp][stage], stores / cfg::kStages & 1u);
          for (int k = 0; k < cfg::kTopK; ++k) {
            const int64_t row = shared.row[warp][stage][k];
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
      const uint32_t stage = stores % cfg::kStages;
      await_barrier(shared.loaded[warp][stage], stores / cfg::kStages & 1u);
      for (int k = 0; k < cfg::kTopK; ++k) {
        const int64_t row = shared.row[warp][stage][k];
        if (row == kNoRow) continue;
        bulk_store(out_rows + row * cfg::kRowBytes, shared.stage[warp][stage], cfg::kRowBytes);
      }
      bulk_commit();
    }
  }
  if (lane_index() == 0) bulk_await<0>();  // the rows are written before the kernel ends
  mark_started(args.common, generation);
}
