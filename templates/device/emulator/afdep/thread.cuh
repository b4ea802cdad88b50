// Threads, warps, blocks and the order of kernels on a stream, on the CPU: the names and signatures
// of device/cuda/afdep/thread.cuh, each one call into the emulator (runtime/emulator/hooks.cpp).
#pragma once

#include "afdep/types.h"

// What the emitted text uses as keywords. The emulator appends an entry point that copies the
// argument struct.
#define __global__
#define __grid_constant__
// Names the bounds, so that their constants count as used.
#define __launch_bounds__(...) __attribute__((annotate("launch_bounds", __VA_ARGS__)))
#define AFDEP_DEVICE inline

// A collective must stay under the condition that it was written under.
#define AFDEP_EMU_COLLECTIVE __attribute__((convergent))
// The same value on every call by one thread, whatever happens to memory.
#define AFDEP_EMU_CONSTANT __attribute__((const))

extern "C" {
AFDEP_EMU_CONSTANT int32_t afdep_emu_block_index();
AFDEP_EMU_CONSTANT int32_t afdep_emu_thread_index();
AFDEP_EMU_COLLECTIVE void afdep_emu_sync_block();
AFDEP_EMU_COLLECTIVE void afdep_emu_sync_warp();
AFDEP_EMU_COLLECTIVE uint32_t afdep_emu_ballot(uint32_t predicate);
AFDEP_EMU_COLLECTIVE uint32_t afdep_emu_match(uint32_t value);
AFDEP_EMU_COLLECTIVE uint32_t afdep_emu_reduce_or(uint32_t value);
AFDEP_EMU_COLLECTIVE uint32_t afdep_emu_shuffle(uint32_t value, int32_t lane);
AFDEP_EMU_COLLECTIVE uint32_t afdep_emu_shuffle_up(uint32_t value, int32_t delta);
void afdep_emu_await_previous_kernel();
void afdep_emu_release_next_kernel();
void* afdep_emu_shared_memory(size_t bytes);
void afdep_emu_add_shared(uint32_t* counter, uint32_t amount);
uint32_t afdep_emu_take_shared(uint32_t* counter, uint32_t amount);
[[noreturn]] void afdep_emu_trap();
uint64_t afdep_emu_clock_ns();
}

namespace afdep {

constexpr uint32_t kAllLanes = 0xffffffffu;

AFDEP_DEVICE int block_index() { return afdep_emu_block_index(); }
AFDEP_DEVICE int thread_index() { return afdep_emu_thread_index(); }
AFDEP_DEVICE int lane_index() { return thread_index() & 31; }
AFDEP_DEVICE int warp_index() { return thread_index() >> 5; }

// Barriers order the shared and global memory accesses of the threads that take part.
AFDEP_DEVICE void sync_block() { afdep_emu_sync_block(); }
AFDEP_DEVICE void sync_warp() { afdep_emu_sync_warp(); }

// Warp collectives: all 32 lanes take part.
AFDEP_DEVICE uint32_t ballot(bool predicate) { return afdep_emu_ballot(predicate ? 1 : 0); }
AFDEP_DEVICE uint32_t match(uint32_t value) { return afdep_emu_match(value); }
AFDEP_DEVICE uint32_t reduce_or(uint32_t value) { return afdep_emu_reduce_or(value); }
AFDEP_DEVICE uint32_t shuffle(uint32_t value, int lane) { return afdep_emu_shuffle(value, lane); }
// Lanes below delta get their own value back.
AFDEP_DEVICE uint32_t shuffle_up(uint32_t value, int delta) {
  return afdep_emu_shuffle_up(value, delta);
}

AFDEP_DEVICE int count_bits(uint32_t bits) { return __builtin_popcount(bits); }
AFDEP_DEVICE int count_bits(uint64_t bits) { return __builtin_popcountl(bits); }
// Index of the lowest set bit; undefined for 0.
AFDEP_DEVICE int lowest_bit(uint32_t bits) { return __builtin_ffs(static_cast<int>(bits)) - 1; }
AFDEP_DEVICE int lowest_bit(uint64_t bits) { return __builtin_ffsl(static_cast<long>(bits)) - 1; }

// Returns when the kernel before this one on the stream has completed and its writes are visible.
// Every thread calls it first: under programmatic dependent launch this kernel is resident before
// that one ends.
AFDEP_DEVICE void await_previous_kernel() { afdep_emu_await_previous_kernel(); }

// The kernel after this one may become resident (it still waits as above).
AFDEP_DEVICE void release_next_kernel() { afdep_emu_release_next_kernel(); }

// The block's dynamic shared memory; uninitialised, 16-byte aligned, as large as the launch says.
template <typename T>
AFDEP_DEVICE T& shared_memory() {
  if constexpr (requires { sizeof(T); }) {
    return *static_cast<T*>(afdep_emu_shared_memory(sizeof(T)));
  } else {  // an array of unknown bound
    return *static_cast<T*>(afdep_emu_shared_memory(0));
  }
}

// Adds to a counter in shared memory. Counts commute, so the result does not depend on the order of
// threads.
AFDEP_DEVICE void add_shared(uint32_t& counter, uint32_t amount) {
  afdep_emu_add_shared(&counter, amount);
}

// Takes the next `amount` numbers from a counter in shared memory. Who gets which is a matter of
// time: fit for sharing out work, not for choosing a place.
AFDEP_DEVICE uint32_t take_shared(uint32_t& counter, uint32_t amount = 1) {
  return afdep_emu_take_shared(&counter, amount);
}

// Ends the kernel with an error that the driver reports: checks.route: trap.
AFDEP_DEVICE void trap() { afdep_emu_trap(); }

// Virtual time, nanoseconds: it stands still while any thread can run.
AFDEP_DEVICE uint64_t clock_ns() { return afdep_emu_clock_ns(); }

}  // namespace afdep
