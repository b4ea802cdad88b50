// Barriers among all ranks, with the blocks of a kernel in step, and counts of no rows. Only plans
// that revert an improvement use them: docs/ablations.md.
#pragma once

#include "afdep/exchange.cuh"
#include "afdep/packet.cuh"

namespace afdep {

// Words of a barrier and of a gate lie so far apart.
constexpr int kGateBytes = 16;

// Dispatch and receive are the first part of an exchange, reply and collect the second.
enum Part : uint32_t { kFirstPart = 1, kSecondPart = 2 };

// Ranks are numbered attention first. kOwnFirst: number of the own role's first rank; kPeerFirst:
// of the other role's, which is peer[0].
template <int kRankCount, int kOwnFirst, int kPeerFirst>
struct AllRanks {
  static constexpr int kRanks = kRankCount;

  AFDEP_DEVICE static int own(const CommonArgs& args) {
    return kOwnFirst + static_cast<int>(args.index);
  }
  AFDEP_DEVICE static uint8_t* window(const CommonArgs& args, int number) {
    return args.peer[(number + kRanks - kPeerFirst) % kRanks];
  }
};

namespace detail {

// One thread waits for a block of its own kernel. All blocks are resident and their waits are
// bounded, so this one is twice as patient: whoever waits for another rank reports first.
AFDEP_DEVICE void await_block(const CommonArgs& args, const uint8_t* word, uint32_t generation,
                              int block) {
  const uint32_t* const flag = reinterpret_cast<const uint32_t*>(word);
  const Awaited awaited{kPhaseGrid, args.index, static_cast<uint32_t>(block)};
  uint32_t seen = load_acquire_here(flag);
  Deadline deadline{0, 0};
  while (seen != generation) {
    if (give_up<2>(deadline, args, flag, awaited, generation, seen, generation)) return;
    seen = load_acquire_here(flag);
  }
}

AFDEP_DEVICE void open_gate(uint8_t* word, uint32_t generation) {
  store_release_here(reinterpret_cast<uint32_t*>(word), generation);
}

// By one warp: tells every other rank that this one has come, and waits for all of them. `words`:
// byte of the barrier in every window, a block of word_bytes a rank.
template <typename Group>
AFDEP_DEVICE void meet(const CommonArgs& args, int64_t words, int64_t word_bytes,
                       uint32_t generation, Phase phase, Part part) {
  const int own = Group::own(args);
  for (int rank = lane_index(); rank < Group::kRanks; rank += 32) {
    if (rank == own) continue;
    release_flag(Group::window(args, rank) + words + own * word_bytes, generation);
  }
  for (int rank = lane_index(); rank < Group::kRanks; rank += 32) {
    if (rank == own) continue;
    await_flag_at(args, args.window + words + rank * word_bytes, generation,
                  {phase, static_cast<uint32_t>(rank), part});
  }
  sync_warp();  // what comes later comes after all lanes' acquires
}

}  // namespace detail

// By every thread of the grid: goes on when every rank has come here. Block 0 meets the other
// ranks, then opens a gate for the other blocks. gate: byte of the workspace.
template <typename Group>
AFDEP_DEVICE void pass_barrier(const CommonArgs& args, int64_t words, int64_t word_bytes,
                               int64_t gate, uint32_t generation, Phase phase, Part part) {
  if (block_index() == 0) {
    if (warp_index() == 0) detail::meet<Group>(args, words, word_bytes, generation, phase, part);
    sync_block();
    if (thread_index() == 0) detail::open_gate(args.workspace + gate, generation);
  } else {
    if (thread_index() == 0) detail::await_block(args, args.workspace + gate, generation, 0);
    sync_block();
  }
}

// By every thread of a grid that only receives: the kernel goes on, and ends when every rank has
// come here. Block 0 sees to it.
template <typename Group>
AFDEP_DEVICE void end_behind_barrier(const CommonArgs& args, int64_t words, int64_t word_bytes,
                                     uint32_t generation, Part part) {
  if (block_index() == 0 && warp_index() == 0) {
    detail::meet<Group>(args, words, word_bytes, generation, kPhaseExit, part);
  }
}

// By every thread of the grid, with nothing left to send: block 0 goes on when every rank has sent
// all. The other blocks only say that they are through. gates: byte of the workspace, a word a
// block.
template <typename Group, int kBlocks>
AFDEP_DEVICE void leave_barrier(const CommonArgs& args, int64_t words, int64_t word_bytes,
                                int64_t gates, uint32_t generation, Part part) {
  sync_block();  // all stores of the block come before the release below
  if (warp_index() != 0) return;
  if (block_index() != 0) {
    if (lane_index() == 0) {
      detail::open_gate(args.workspace + gates + block_index() * kGateBytes, generation);
    }
    return;
  }
  for (int block = 1 + lane_index(); block < kBlocks; block += 32) {
    detail::await_block(args, args.workspace + gates + block * kGateBytes, generation, block);
  }
  sync_warp();  // and all stores of the other blocks
  detail::meet<Group>(args, words, word_bytes, generation, kPhaseExit, part);
}

// By one warp: kPackets packets of zeros to each of the ranks [kFirst, kEnd): no rows for the
// experts there. inbox: byte of this generation's half in every window, a block of block_bytes a
// rank.
template <typename Group, int kFirst, int kEnd, int kPackets>
AFDEP_DEVICE void send_no_rows(const CommonArgs& args, int64_t inbox, int64_t block_bytes,
                               uint32_t generation) {
  const int own = Group::own(args);
  for (int i = lane_index(); i < (kEnd - kFirst) * kPackets; i += 32) {
    const int rank = kFirst + i / kPackets;
    if (rank == own) continue;
    store_packet(
        Group::window(args, rank) + inbox + own * block_bytes + i % kPackets * kPacketBytes,
        Packet{{0, 0, 0}, generation});
  }
}

// By one warp: waits for what send_no_rows sends, from each of the ranks [kFirst, kEnd).
template <typename Group, int kFirst, int kEnd, int kPackets>
AFDEP_DEVICE void await_no_rows(const CommonArgs& args, int64_t inbox, int64_t block_bytes,
                                uint32_t generation, Part part) {
  const int own = Group::own(args);
  for (int i = lane_index(); i < (kEnd - kFirst) * kPackets; i += 32) {
    const int rank = kFirst + i / kPackets;
    if (rank == own) continue;
    await_packet(args, args.window + inbox + rank * block_bytes + i % kPackets * kPacketBytes,
                 generation, {kPhaseCounts, static_cast<uint32_t>(rank), part});
  }
}

}  // namespace afdep
