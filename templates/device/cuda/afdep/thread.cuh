// Threads, warps, blocks and the order of kernels on a stream.
#pragma once

#include "afdep/types.h"

#define AFDEP_DEVICE __device__ __forceinline__

namespace afdep {

constexpr uint32_t kAllLanes = 0xffffffffu;

AFDEP_DEVICE int block_index() { return static_cast<int>(blockIdx.x); }
AFDEP_DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }
AFDEP_DEVICE int lane_index() { return static_cast<int>(threadIdx.x & 31u); }
AFDEP_DEVICE int warp_index() { return static_cast<int>(threadIdx.x >> 5u); }

// Barriers order the shared and global memory accesses of the threads that take part.
AFDEP_DEVICE void sync_block() { __syncthreads(); }
AFDEP_DEVICE void sync_warp() { __syncwarp(); }

// Warp collectives: all 32 lanes take part.
AFDEP_DEVICE uint32_t ballot(bool predicate) { return __ballot_sync(kAllLanes, predicate); }
AFDEP_DEVICE uint32_t match(uint32_t value) { return __match_any_sync(kAllLanes, value); }
AFDEP_DEVICE uint32_t reduce_or(uint32_t value) { return __reduce_or_sync(kAllLanes, value); }
AFDEP_DEVICE uint32_t shuffle(uint32_t value, int lane) {
  return __shfl_sync(kAllLanes, value, lane);
}
// Lanes below delta get their own value back.
AFDEP_DEVICE uint32_t shuffle_up(uint32_t value, int delta) {
  return __shfl_up_sync(kAllLanes, value, static_cast<unsigned>(delta));
}

AFDEP_DEVICE int count_bits(uint32_t bits) { return __popc(bits); }
AFDEP_DEVICE int count_bits(uint64_t bits) { return __popcll(bits); }
// Index of the lowest set bit; undefined for 0.
AFDEP_DEVICE int lowest_bit(uint32_t bits) { return __ffs(static_cast<int>(bits)) - 1; }
AFDEP_DEVICE int lowest_bit(uint64_t bits) { return __ffsll(static_cast<long long>(bits)) - 1; }

// Returns when the kernel before this one on the stream has completed and its writes are visible.
// Every thread calls it first: under programmatic dependent launch this kernel is resident before
// that one ends.
AFDEP_DEVICE void await_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// The kernel after this one may become resident (it still waits as above).
AFDEP_DEVICE void release_next_kernel() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// The block's dynamic shared memory; uninitialised, 16-byte aligned, as large as the launch says.
template <typename T>
AFDEP_DEVICE T& shared_memory() {
  extern __shared__ __align__(16) unsigned char afdep_dynamic_shared_memory[];
  return *reinterpret_cast<T*>(afdep_dynamic_shared_memory);
}

// Adds to a counter in shared memory. Counts commute, so the result does not depend on the order of
// threads.
AFDEP_DEVICE void add_shared(uint32_t& counter, uint32_t amount) { atomicAdd(&counter, amount); }

// Takes the next `amount` numbers from a counter in shared memory. Who gets which is a matter of
// time: fit for sharing out work, not for choosing a place.
AFDEP_DEVICE uint32_t take_shared(uint32_t& counter, uint32_t amount = 1) {
  return atomicAdd(&counter, amount);
}

// Ends the kernel with an error that the driver reports: checks.route: trap.
AFDEP_DEVICE void trap() { asm volatile("trap;"); }

// A clock shared by all SMs, nanoseconds; ticks may be a microsecond apart.
AFDEP_DEVICE uint64_t clock_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

}  // namespace afdep
