// Grid and block of each kernel: how rows are spread over lanes, warps and CTAs.
#pragma once

#include <cstdint>

namespace afdep::plan {

// Limits of sm_90a and sm_100a that plans keep to.
constexpr int kMaxThreads = 512;  // a CTA, so that two fit an SM with 64 registers a thread
// Launch bounds of packet kernels. 80 registers a thread let any two kernels of a bundle fit an SM
// together; 72 a CTA of up to 8 warps, two in each quarter of the SM, beside a bulk kernel.
constexpr int kPacketBoundThreads = 384;
constexpr int kSmallPacketBoundThreads = 448;
constexpr int kSmallPacketThreads = 256;
constexpr int kBlocksPerSm = 2;
constexpr int kBulkThreads = 384;  // a CTA whose rings take most of an SM's shared memory
// The launch bound of bulk kernels leaves 96 registers a thread, so that a packet kernel of the
// bundle fits beside one; of reply, which sums 64 elements a lane, 128. It takes 120, and packet
// kernels of few tokens can spare that.
constexpr int kBulkBoundThreads = 640;
constexpr int kBulkReplyBoundThreads = 512;
constexpr int kRegistersPerSm = 65536;
constexpr int kRegisterGranule = 8;  // registers are given out in steps of 8 a thread
constexpr std::int64_t kMaxSharedBytes = 227 * 1024;
constexpr int kDefaultSms = 24;  // kernel.num_sms: auto

// flag_in_data: a group of warps takes a row, each lane a part of it: three runs of `run_words`
// words, one packet a word of a run (Share in templates/device/common/afdep/row.cuh).
struct PacketShape {
  int shares = 1;  // parts of a row
  int group_warps = 1;
  int groups = 1;     // a CTA
  int row_ctas = 1;   // that share a group's row
  int row_warps = 1;  // that share a row, in all of them
  int grid = 1;
  int threads = 32;
  bool one_round = false;  // every item has a group, every part a lane
};

// Run lengths that the kernels know, and packets of a row's wire form with one.
constexpr int kRunWords[] = {1, 4};
int row_shares(int row_bytes, int run_words);

// items: rows that the grid handles at most; sms: CTAs at most.
PacketShape packet_shape(int row_bytes, int run_words, std::int64_t items, int sms);

// The same with a row spread over several CTAs where rows make fewer than `ctas`: an SM stores at
// most 33 bytes a clock. Precondition: shape.one_round.
PacketShape spread_rows(const PacketShape& shape, std::int64_t items, int ctas);

// The same with all warps of all rows dealt out to CTAs as evenly as whole warps allow, whichever
// rows share a CTA then; CTAs of few warps stay as they are. Precondition: shape.one_round.
PacketShape deal_warps(const PacketShape& shape, std::int64_t items, int sms);

// Relative time of a grid of this shape over its items.
double packet_cost(const PacketShape& shape, int run_words, std::int64_t items);

// chunked: a warp takes a row, then the next of its chunk.
struct ChunkShape {
  int grid = 1;
  int chunk_rows = 1;    // rows under one release flag
  int lane_vectors = 1;  // 16-byte vectors of a lane in flight
  int pieces = 1;        // rounds of lane_vectors that a row takes
};

// rows: of one writer and bucket; max_lane_vectors: what the kernel's registers allow.
ChunkShape chunk_shape(int row_bytes, std::int64_t rows, int sms, int max_lane_vectors, int warps);

// bulk: a CTA owns a slice of a source's tokens; its copy warps move rows through rings of
// shared-memory stages.
struct BulkShape {
  int warps = 1;   // that copy, each with its own ring
  int stages = 2;  // of a ring, a row each
  int lead = 1;    // rows on their way in while an older one goes out
  std::int64_t ring_bytes = 0;
};

// Whether two rows fit a ring at all.
bool bulk_fits(int row_bytes);
// shared_bytes: what the kernel needs beside the rings; max_warps: that copy. Precondition:
// bulk_fits.
BulkShape bulk_shape(int row_bytes, std::int64_t shared_bytes, int max_warps = kBulkThreads / 32);

// Registers a thread that a launch bound of `threads` x `blocks_per_sm` leaves.
int register_ceiling(int threads, int blocks_per_sm);

// sizeof(afdep::RankTable<local_experts, own_units, top_k>) in
// templates/device/common/afdep/rank.cuh, which asserts it.
std::int64_t rank_table_bytes(int local_experts, std::int64_t own_units, int top_k);

}  // namespace afdep::plan
