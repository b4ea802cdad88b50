// The kernels of one bucket, one by one. Internal to the planner: kernels.h is its face.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "generator/plan/constants.h"
#include "generator/plan/kernels.h"
#include "generator/plan/layout.h"
#include "generator/plan/plan.h"
#include "generator/plan/shape.h"
#include "runtime/support/result.h"

namespace afdep::plan {

inline constexpr int kSpelledWorkers = 8;    // up to so many peers are written out one by one
inline constexpr int kCopyLaneVectors = 4;   // dispatch and receive: 16 registers of payload a lane
inline constexpr int kSumLaneVectors = 2;    // reply and collect: some such pieces and FP32 sums
inline constexpr int kBulkReplyVectors = 8;  // the same of a bulk reply, whose rows wait in stages
inline constexpr int kBulkCollectVectors = 4;  // and of a bulk collect
inline constexpr int kMaxTableBatch = 4;       // table, count or choice packets of a lane in flight
inline constexpr int kMaxRouteBatch = 4;       // ids and weights of a lane in flight
inline constexpr int kGroupUnits = 4;          // that a warp of a bulk receive takes at once
inline constexpr int kFewUnits = 6;            // up to so many it takes all at once
inline constexpr int kSharingUnits = 3;        // from so many a warp on CTAs share the last units:
inline constexpr int kFewShared = 8;           // one in so many where they are few,
inline constexpr int kManyShared = 4;          // or where they are not
inline constexpr int kMaxMailSlots = 8;        // of a warp of a bulk dispatch or reply
// A row is spread over CTAs while its bucket's rows make no more of them: so few that with all
// ranks on one GPU kernels may still launch early (runtime/residency.cpp).
inline constexpr int kSpreadCtas = 16;
inline constexpr int kWarpTablePackets = 32;  // of a table that a warp ranks, a lane each
inline constexpr int kMaxEarlyTopK = 16;      // rows of a unit in every lane's registers

template <typename T>
constexpr T ceil_div(T value, T by) {
  return (value + by - 1) / by;
}

inline Step step(StepKind kind, std::string text) { return {kind, {}, std::move(text)}; }
inline Step await(std::string signal, std::string text) {
  return {StepKind::kAwait, std::move(signal), std::move(text)};
}
inline Step publish(std::string signal, std::string text) {
  return {StepKind::kPublish, std::move(signal), std::move(text)};
}

// Everything that the kernels of one bucket share.
class BucketKernels {
 public:
  BucketKernels(const ExchangePlan& plan, const BucketRequest& request)
      : plan_(plan), request_(request) {}

  [[nodiscard]] Kernel dispatch() const;
  [[nodiscard]] Result<Kernel> receive() const;
  [[nodiscard]] Kernel dispatch_bulk() const;
  [[nodiscard]] Result<Kernel> receive_bulk() const;
  [[nodiscard]] Kernel reply_bulk() const;
  [[nodiscard]] Kernel reply() const;
  [[nodiscard]] Kernel collect() const;
  [[nodiscard]] Kernel collect_view() const;
  // Epilogues of receive and collect, and what the other role launches in their place.
  [[nodiscard]] Kernel expand() const;
  [[nodiscard]] Kernel reduce() const;
  [[nodiscard]] Kernel idle(Operation operation) const;
  // Adds what the plan's ablations add to a kernel: conditions, steps and constants.
  void ablate(Kernel& kernel) const;

  // What dispatch and receive of a bulk bucket agree on, and the shape of each.
  struct BulkPlan {
    int slice_tokens = 0;
    int slices = 0;  // of one source
    BulkShape copy;  // dispatch
    std::int64_t dispatch_shared_bytes = 0;
    std::int64_t blocks = 0;       // receive
    std::int64_t block_units = 0;  // a CTA's part of all
    std::int64_t own_units = 0;    // those of it that no other CTA takes
    int group_units = 1;
    std::int64_t single_own = 0;
    bool wide_prefix = false;
    BulkShape expand;  // receive
    std::int64_t receive_shared_bytes = 0;
    // Rings, their barriers, and where the rows in them go.
    [[nodiscard]] std::int64_t expand_ring_bytes(int top_k) const {
      return expand.ring_bytes + std::int64_t{8 + 4 * top_k} * expand.warps * expand.stages;
    }
    [[nodiscard]] bool shares_units() const { return own_units < block_units; }
    [[nodiscard]] int segment_tokens() const { return ceil_div(slice_tokens, copy.warps); }
  };
  [[nodiscard]] BulkPlan bulk_plan() const;

  [[nodiscard]] ChunkShape dispatch_chunk() const {
    return chunk_shape(plan_.row_bytes, request_.bucket, request_.attention_sms, kCopyLaneVectors,
                       kMaxThreads / 32);
  }
  [[nodiscard]] ChunkShape reply_chunk() const {
    ChunkShape shape =
        chunk_shape(plan_.row_bytes, units(), request_.ffn_sms,
                    bulk() ? kBulkReplyVectors : kSumLaneVectors, sum_threads() / 32);
    // A bulk reply has a flag of its own; the only row of a token goes back in chunks.
    if (bulk() && plan_.top_k > 1) shape.chunk_rows = 1;
    shape.chunk_rows = std::min(shape.chunk_rows, request_.bucket);
    return shape;
  }

 private:
  [[nodiscard]] bool bulk() const { return request_.protocol == Protocol::kBulk; }
  // Collect of raw rows: vectors of a lane in flight; reply and collect: threads of a CTA.
  [[nodiscard]] int sum_vectors() const { return bulk() ? kBulkCollectVectors : kSumLaneVectors; }
  [[nodiscard]] int sum_threads() const { return bulk() ? kBulkThreads : kMaxThreads; }
  [[nodiscard]] bool packets() const { return request_.protocol == Protocol::kFlagInData; }
  [[nodiscard]] std::int64_t units() const {
    return std::int64_t{plan_.attention_ranks} * request_.bucket;
  }
  [[nodiscard]] bool spelled() const { return plan_.ffn_ranks <= kSpelledWorkers; }
  [[nodiscard]] bool reply_by_slot() const { return plan_.ffn_ranks > plan_.top_k; }

  [[nodiscard]] Kernel start(Role role, Operation operation) const;
  [[nodiscard]] PacketShape packets_for(std::int64_t items, int sms) const {
    return packet_shape(plan_.row_bytes, packet_run(plan_, request_), items, sms);
  }
  // Of dispatch and collect; of receive and reply.
  [[nodiscard]] PacketShape source_shape() const;
  [[nodiscard]] PacketShape worker_shape() const;
  // One unit a group of warps: receive looks at its row before the ids are ranked, reply at its
  // rows before receive has ended.
  [[nodiscard]] bool early_look() const;
  // The table fits a warp, so that each ranks it for itself.
  [[nodiscard]] bool warp_ranked() const;
  // Where warps are dealt out: warps of a CTA and of a row.
  void set_dealt_shape(Kernel& kernel, const PacketShape& shape, Constants& constants) const;
  // Whether a kernel of so many threads a CTA is held to the registers that a bulk kernel leaves.
  [[nodiscard]] bool leaves_room(int threads) const;
  // Of a token's rows, as many as a packet reply with so many registers a thread holds at once.
  [[nodiscard]] int rows_in_flight(int registers) const;
  // Where groups take one unit after another: lots of a row, a group's lanes each.
  void add_lots(const PacketShape& shape, Constants& constants) const;
  // Where receive keeps what reply reads of a unit.
  void add_units(Constants& constants) const;
  // with_groups: the kernel steps over items by groups; one that looks early gives each group one.
  void set_packet_shape(Kernel& kernel, const PacketShape& shape, bool with_groups,
                        Constants& constants) const;
  void set_chunk_shape(Kernel& kernel, int grid, int threads, Constants& constants) const;
  // Threads of a CTA, CTAs an SM, the launch bound and what registers it leaves.
  void set_threads(Kernel& kernel, int threads, Constants& constants) const;
  void add_lane_pieces(const ChunkShape& shape, Constants& constants) const;
  // with_shares: the kernel counts parts; one that gives each lane one part does not.
  void add_row_packets(bool with_shares, Constants& constants) const;
  // A region that `kernel` addresses by half and by block: the writer's block of a peer's window,
  // or all blocks of its own.
  void add_inbox(const Kernel& kernel, const RoleLayout& layout, std::string_view region,
                 std::string_view prefix, std::string_view block, Constants& constants) const;
  void add_choices(const Kernel& kernel, Constants& constants) const;
  void add_offset(const Kernel& kernel, const RoleLayout& layout, std::string_view region,
                  std::string name, Constants& constants) const;
  void add_sum_of_replies(Kernel& kernel, Constants& constants) const;
  void add_barrier_constants(const Kernel& kernel, Part part, Constants& constants) const;
  void add_no_rows_constants(const Kernel& kernel, Part part, Constants& constants) const;
  // by_slot: replies of several workers, a block each; else all lie in one block.
  void add_replies(const Kernel& kernel, bool by_slot, Constants& constants) const;

  const ExchangePlan& plan_;
  const BucketRequest& request_;
};

}  // namespace afdep::plan
