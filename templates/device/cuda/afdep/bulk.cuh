// Bulk copies between global and shared memory: the async proxy, its barriers, groups and fences.
// Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk" and "Proxies".
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"

namespace afdep {

// In shared memory, 8-aligned. Completes a phase when one thread has expected bytes and those bytes
// have arrived, or when one thread has arrived.
struct BulkBarrier {
  uint64_t state;
};

namespace detail {

AFDEP_DEVICE uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

}  // namespace detail

// One thread, once; then publish_barriers() by the same thread and a block barrier before anybody
// uses it.
AFDEP_DEVICE void init_barrier(BulkBarrier& barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(detail::shared_address(&barrier))
               : "memory");
}
AFDEP_DEVICE void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Starts a copy of `bytes`, a multiple of 16, between 16-aligned addresses; the barrier's current
// phase ends when it has arrived. The source is not read again: it leaves the caches first.
AFDEP_DEVICE void bulk_load(void* shared_to, const void* global_from, uint32_t bytes,
                            BulkBarrier& barrier) {
  const uint32_t at = detail::shared_address(&barrier);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes)
               : "memory");
  asm volatile(
      "{\n\t.reg .b64 policy;\n\tcreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n\t"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], policy;\n\t}" ::"r"(detail::shared_address(shared_to)),
      "l"(global_from), "r"(bytes), "r"(at)
      : "memory");
}

// Returns when the phase of this parity has ended; then the bytes are visible to the caller.
AFDEP_DEVICE void await_barrier(BulkBarrier& barrier, uint32_t parity) {
  asm volatile(
      "{\n\t.reg .pred done;\n\tagain:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
      "@!done bra again;\n\t}" ::"r"(detail::shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// Ends the current phase by hand: publishes to the block what this thread has done, and what other
// threads have by a warp barrier.
AFDEP_DEVICE void arrive_barrier(BulkBarrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(detail::shared_address(&barrier))
               : "memory");
}

// Whether the phase of this parity has ended; then what its arrival published is visible to the
// caller. May say false a while longer.
AFDEP_DEVICE bool barrier_passed(BulkBarrier& barrier, uint32_t parity) {
  uint32_t passed;
  asm volatile(
      "{\n\t.reg .pred done;\n\t"
      "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
      "selp.u32 %0, 1, 0, done;\n\t}"
      : "=r"(passed)
      : "r"(detail::shared_address(&barrier)), "r"(parity)
      : "memory");
  return passed != 0;
}

// Starts a copy into this or another rank's memory, in the caller's open group.
AFDEP_DEVICE void bulk_store(void* global_to, const void* shared_from, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global_to),
               "r"(detail::shared_address(shared_from)), "r"(bytes)
               : "memory");
}
// Closes the caller's open group.
AFDEP_DEVICE void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most kPending of the caller's newest groups still read shared memory: older ones'
// stages may be reused.
template <int kPending>
AFDEP_DEVICE void bulk_await_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}
// Waits until at most kPending of the caller's newest groups are incomplete: older ones' writes are
// then visible to the caller, and a release that follows publishes them.
template <int kPending>
AFDEP_DEVICE void bulk_await() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

// Orders this thread's ordinary accesses, and those that a barrier or an acquire ordered before
// them, against bulk copies that it starts later, and the other way round: those to global memory,
// or those to the block's shared memory. One fence of both would wait for all bulk copies of the SM
// that are under way (docs/performance.md, "What a fence waits for").
AFDEP_DEVICE void fence_bulk_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
AFDEP_DEVICE void fence_bulk_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

}  // namespace afdep
