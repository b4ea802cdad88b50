// Handing work from warps to one more warp of their block, so that none of them waits for what it
// takes to finish it: a row's or a reply's flag goes out behind a fence, which takes about a
// microsecond.
#pragma once

#include "afdep/bulk.cuh"
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"

namespace afdep {

constexpr int kLastMail = -1;  // the sender ends

// Shared memory of one sender: items that it has handed over and nobody has taken yet.
template <int kSlotCount>
struct Mailbox {
  static constexpr int kSlots = kSlotCount;

  BulkBarrier filled[kSlots];
  BulkBarrier emptied[kSlots];
  int32_t item[kSlots];
};

// By one warp, before publish_barriers and a block barrier.
template <typename Box>
AFDEP_DEVICE void init_mailbox(Box& box) {
  if (lane_index() < Box::kSlots) {
    init_barrier(box.filled[lane_index()]);
    init_barrier(box.emptied[lane_index()]);
  }
}

// By one thread, always the same of the box: hands over an item, not negative, or kLastMail. What
// the thread has done before, and others up to a warp barrier, comes before what its taker does.
// sent: how many it has handed over.
template <typename Box>
AFDEP_DEVICE void send_mail(Box& box, uint32_t sent, int item) {
  const uint32_t slot = sent % Box::kSlots;
  const uint32_t round = sent / Box::kSlots;
  if (round > 0) await_barrier(box.emptied[slot], (round - 1) & 1u);
  box.item[slot] = item;
  arrive_barrier(box.filled[slot]);
}

// By the warp that takes: lane w empties box w until its sender has ended. flag(item) is called on
// the lanes that have one, behind a fence: flags that it stores publish what the item's sender had
// done. One fence serves whatever has come by then.
template <int kSenders, typename Box, typename Flag>
AFDEP_DEVICE void flag_mail(Box (&boxes)[kSenders], const Flag& flag) {
  static_assert(kSenders <= 32, "a lane a sender");
  uint32_t taken = 0;
  bool open = lane_index() < kSenders;
#pragma unroll 1
  while (ballot(open) != 0) {
    uint32_t filled = taken;
    if (open) {
      Box& box = boxes[lane_index()];
      while (filled - taken < Box::kSlots &&
             barrier_passed(box.filled[filled % Box::kSlots], filled / Box::kSlots & 1u)) {
        ++filled;
      }
    }
    if (ballot(filled != taken) == 0) continue;
    fence_flags();
    for (; taken != filled; ++taken) {
      Box& box = boxes[lane_index()];
      const uint32_t slot = taken % Box::kSlots;
      const int item = box.item[slot];
      arrive_barrier(box.emptied[slot]);
      if (item == kLastMail) {
        open = false;
      } else {
        flag(item);
      }
    }
  }
}

}  // namespace afdep
