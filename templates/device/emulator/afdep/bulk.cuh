// Bulk copies on the CPU: the names and signatures of device/cuda/afdep/bulk.cuh, each one call
// into the emulator's async proxy.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

extern "C" {
void afdep_emu_init_barrier(void* barrier);
void afdep_emu_publish_barriers();
void afdep_emu_bulk_load(void* shared_to, const void* global_from, uint32_t bytes, void* barrier);
void afdep_emu_await_barrier(void* barrier, uint32_t parity);
void afdep_emu_arrive_barrier(void* barrier);
uint32_t afdep_emu_barrier_passed(void* barrier, uint32_t parity);
void afdep_emu_bulk_store(void* global_to, const void* shared_from, uint32_t bytes);
void afdep_emu_bulk_commit();
void afdep_emu_bulk_await_read(uint32_t pending);
void afdep_emu_bulk_await(uint32_t pending);
void afdep_emu_fence_bulk_global();
void afdep_emu_fence_bulk_shared();
}

namespace afdep {

// In shared memory, 8-aligned. Completes a phase when one thread has expected bytes and those bytes
// have arrived, or when one thread has arrived.
struct BulkBarrier {
  uint64_t state;
};

// One thread, once; then publish_barriers() by the same thread and a block barrier before anybody
// uses it.
AFDEP_DEVICE void init_barrier(BulkBarrier& barrier) { afdep_emu_init_barrier(&barrier); }
AFDEP_DEVICE void publish_barriers() { afdep_emu_publish_barriers(); }

// Starts a copy of `bytes`, a multiple of 16, between 16-aligned addresses; the barrier's current
// phase ends when it has arrived. The source is not read again: it leaves the caches first.
AFDEP_DEVICE void bulk_load(void* shared_to, const void* global_from, uint32_t bytes,
                            BulkBarrier& barrier) {
  afdep_emu_bulk_load(shared_to, global_from, bytes, &barrier);
}

// Returns when the phase of this parity has ended; then the bytes are visible to the caller.
AFDEP_DEVICE void await_barrier(BulkBarrier& barrier, uint32_t parity) {
  afdep_emu_await_barrier(&barrier, parity);
}

// Ends the current phase by hand: publishes to the block what this thread has done, and what other
// threads have by a warp barrier.
AFDEP_DEVICE void arrive_barrier(BulkBarrier& barrier) { afdep_emu_arrive_barrier(&barrier); }

// Whether the phase of this parity has ended; then what its arrival published is visible to the
// caller. May say false a while longer.
AFDEP_DEVICE bool barrier_passed(BulkBarrier& barrier, uint32_t parity) {
  return afdep_emu_barrier_passed(&barrier, parity) != 0;
}

// Starts a copy into this or another rank's memory, in the caller's open group.
AFDEP_DEVICE void bulk_store(void* global_to, const void* shared_from, uint32_t bytes) {
  afdep_emu_bulk_store(global_to, shared_from, bytes);
}
// Closes the caller's open group.
AFDEP_DEVICE void bulk_commit() { afdep_emu_bulk_commit(); }
// Waits until at most kPending of the caller's newest groups still read shared memory: older ones'
// stages may be reused.
template <int kPending>
AFDEP_DEVICE void bulk_await_read() {
  afdep_emu_bulk_await_read(kPending);
}
// Waits until at most kPending of the caller's newest groups are incomplete: older ones' writes are
// then visible to the caller, and a release that follows publishes them.
template <int kPending>
AFDEP_DEVICE void bulk_await() {
  afdep_emu_bulk_await(kPending);
}

// Orders this thread's ordinary accesses, and those that a barrier or an acquire ordered before
// them, against bulk copies that it starts later, and the other way round: those to global memory,
// or those to the block's shared memory.
AFDEP_DEVICE void fence_bulk_global() { afdep_emu_fence_bulk_global(); }
AFDEP_DEVICE void fence_bulk_shared() { afdep_emu_fence_bulk_shared(); }

}  // namespace afdep
