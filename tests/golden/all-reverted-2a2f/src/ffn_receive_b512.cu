// afdep: all-reverted-2a2f | ffn | receive | bucket 512 | bulk
// Sums the counts of all slices, makes rows of the choices and waits for the rows' flags; expand
// takes the rows out of the inbox.
#include "afdep/abi.h"
#include "afdep/barrier.cuh"
#include "afdep/exchange.cuh"
#include "afdep/slice.cuh"

using namespace afdep;

namespace cfg {
constexpr int kBucket = 512;                    // tokens of one source at most
constexpr int kSources = 2;                     // attention ranks
constexpr int kTopK = 8;                        // choices of a token
constexpr int kLocalExperts = 64;               // 128 experts over 2 workers
constexpr int kAlignment = 1;                   // rows; an expert starts at a multiple
constexpr int kThreads = 384;                   // 12 warps
constexpr int kBoundThreads = 640;              // launched with 384; one bound keeps a bundle's kernels alike
constexpr int kBlocksPerSm = 1;                 // leaves 96 registers a thread
constexpr int kBlocks = 24;                     // CTAs
constexpr int64_t kSharedBytes = 12224;         // the prefix table
constexpr int kSourceSlices = 24;               // dispatch CTAs of a source
constexpr int kSliceTokens = 22;                // tokens of one of them
constexpr int kOwnUnits = 44;                   // 48 slices x 22 tokens over 24 CTAs
constexpr int kGroupUnits = 4;                  // that a warp takes at once
constexpr int kSingleOwn = 44;                  // from here on it takes one, so that warps end together
constexpr int kWidePrefix = 0;                  // counts of more than 16 bits
constexpr int kCountBatch = 2;                  // count packets of a lane in flight, of 528 in all
constexpr int kChoiceBatch = 1;                 // choice packets of a lane in flight, of 264 in all
constexpr int64_t kCountsOffset = 22552576;     // region counts of this rank's window
constexpr int64_t kCountsHalfBytes = 17408;     // by generation parity
constexpr int64_t kCountsSourceBytes = 4352;    // 24 items of 176 bytes
constexpr int64_t kChoicesOffset = 22587392;    // region choices of this rank's window
constexpr int64_t kChoicesHalfBytes = 196608;   // by generation parity
constexpr int64_t kChoicesSourceBytes = 49152;  // 512 items of 96 bytes
constexpr int64_t kChoicesTokenBytes = 96;      // 6 packets
constexpr int64_t kFlagsOffset = 22980608;      // region row_flags of this rank's window
constexpr int64_t kFlagsHalfBytes = 8192;       // by generation parity
constexpr int64_t kFlagsSourceBytes = 2048;     // 512 items of 4 bytes
constexpr int64_t kUnitRowsOffset = 0;          // region unit_rows of the workspace
constexpr int kRanks = 4;                       // numbered attention first
constexpr int kOwnFirst = 2;                    // number of this role's first rank
constexpr int kPeerFirst = 0;                   // number of the other role's
constexpr int64_t kEntryOffset = 0;             // region entry_dispatch of every rank's window
constexpr int64_t kEntryRankBytes = 256;        // a word a rank
constexpr int64_t kEntryGateOffset = 45056;     // region gates of the workspace
constexpr int64_t kExitOffset = 1024;           // region exit_dispatch of every rank's window
constexpr int64_t kExitRankBytes = 256;         // a word a rank
constexpr int64_t kNoRowsOffset = 2048;         // region no_rows_dispatch of every rank's window
constexpr int64_t kNoRowsHalfBytes = 1024;      // by generation parity
constexpr int64_t kNoRowsRankBytes = 256;       // 11 items of 16 bytes
constexpr int kNoRowsPackets = 11;              // counts of a rank's experts, six a packet
constexpr int kNoRowsToFirst = 0;               // rank number that is told first
constexpr int kNoRowsToEnd = 4;                 // this rank has no rows
constexpr int kNoRowsFromFirst = 2;             // rank number that is awaited first
constexpr int kNoRowsFromEnd = 4;               // rows come from the other role alone
}  // namespace cfg

using Group = AllRanks<cfg::kRanks, cfg::kOwnFirst, cfg::kPeerFirst>;

struct Shared {
  UnitChoices<cfg::kOwnUnits, cfg::kTopK> choices;
  PrefixTable<cfg::kLocalExperts, cfg::kSources * cfg::kSourceSlices, cfg::kThreads,
              cfg::kWidePrefix>
      prefix;
  uint32_t next_own;  // of the own units, which no warp has taken yet
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
  constexpr int shared_number = kNumbers;  // none is shared
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

  if (block_index() == 0) publish_ends<cfg::kThreads>(shared.prefix, args.ends, args.counts);

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
  // Exit barrier: this kernel ends, and its epilogue reads rows, when every rank has sent all.
  end_behind_barrier<Group>(args.common, cfg::kExitOffset, cfg::kExitRankBytes, generation, kFirstPart);

  // A warp takes kGroupUnits own units at once, one where few are left, and looks out for all of
  // them: lane u for the u-th.
  int group = cfg::kGroupUnits;
  const auto take_own = [&]() {
    uint32_t taken = 0;
    if (lane_index() == 0) taken = take_shared(shared.next_own, static_cast<uint32_t>(group));
    const int first = static_cast<int>(shuffle(taken, 0));
    return first < cfg::kOwnUnits ? first : kNoUnit;
  };
#pragma unroll 1
  for (int first = take_own(); first != kNoUnit; first = take_own()) {
    const int watching = lane_index() < group ? first + lane_index() : kNoUnit;
    const Unit watched = unit_of(watching);
    uint32_t left = lanes_that(watched.exists);
    const uint32_t local =
        lanes_that(watched.exists && chooses_local<cfg::kLocalExperts>(shared.choices, watching,
                                                                       first_expert));
    if (first >= cfg::kSingleOwn) group = 1;
    for (; left != 0; left &= left - 1) {
      const int u = lowest_bit(left);
      const Unit unit = unit_of(first + u);
      place_unit(first + u, unit);
      if ((local >> u & 1u) == 0) continue;
      // Published by dispatch of the unit's source, after the row.
      await_flag_by_warp(args.common, flag_of(unit), generation, awaited_row(unit));
    }
  }
  if (block_index() == 0 && warp_index() == 0) {
    await_no_rows<Group, cfg::kNoRowsFromFirst, cfg::kNoRowsFromEnd, cfg::kNoRowsPackets>(
        args.common, no_rows, cfg::kNoRowsRankBytes, generation, kFirstPart);
  }
  mark_started(args.common, generation);
}
