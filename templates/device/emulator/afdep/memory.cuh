// Global memory on the CPU: the names and signatures of device/cuda/afdep/memory.cuh. Every access
// is a call, so that the emulator can check its address, hand it to the memory model and switch
// threads at it.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"
#include "afdep/units.h"

// Whom an atomic access is atomic for: afdep::emulator::Scope.
#define AFDEP_EMU_GPU_SCOPE 2
#define AFDEP_EMU_SYSTEM_SCOPE 3

extern "C" {
uint32_t afdep_emu_load_input_word(const void* at);
uint64_t afdep_emu_load_input_word64(const void* at);
void afdep_emu_load_input_vector(const void* at, void* value);
uint32_t afdep_emu_load_word(const void* at);
void afdep_emu_load_vector(const void* at, void* value);
void afdep_emu_store_word(void* at, uint32_t value);
void afdep_emu_store_vector(void* at, const void* value);
void afdep_emu_store_release(void* flag, uint32_t value, uint8_t scope);
uint32_t afdep_emu_load_acquire(const void* flag, uint8_t scope);
void afdep_emu_fence_flags();
void afdep_emu_store_flag(void* flag, uint32_t value);
void afdep_emu_store_packet(void* at, const void* packet);
void afdep_emu_load_packet(const void* at, void* packet);
uint32_t afdep_emu_load_relaxed(const void* at, uint8_t scope);
uint32_t afdep_emu_load_abort(const void* at);
void afdep_emu_store_relaxed(void* at, uint32_t value, uint8_t scope);
uint32_t afdep_emu_claim(void* state, uint8_t scope);
uint32_t afdep_emu_take(void* counter, uint8_t scope);
void afdep_emu_poll_missed(const void* at, uint32_t phase, uint32_t peer, uint32_t item,
                           uint32_t seen, uint32_t expected);
}

namespace afdep {

// Tensors that no kernel writes while this one runs.
AFDEP_DEVICE uint32_t load_input_word(const void* at) { return afdep_emu_load_input_word(at); }
AFDEP_DEVICE uint64_t load_input_word64(const void* at) { return afdep_emu_load_input_word64(at); }
AFDEP_DEVICE Vector load_input_vector(const void* at) {
  Vector v;
  afdep_emu_load_input_vector(at, &v);
  return v;
}

// The same address, in a register from here on.
template <typename T>
AFDEP_DEVICE T* kept(T* address) {
  return address;
}

// Ordinary (weak) accesses: ordered only by barriers, kernel order, and the release and acquire
// below.
AFDEP_DEVICE uint32_t load_word(const void* at) { return afdep_emu_load_word(at); }
AFDEP_DEVICE Vector load_vector(const void* at) {
  Vector v;
  afdep_emu_load_vector(at, &v);
  return v;
}
AFDEP_DEVICE void store_word(void* at, uint32_t value) { afdep_emu_store_word(at, value); }
AFDEP_DEVICE void store_vector(void* at, const Vector& v) { afdep_emu_store_vector(at, &v); }

// Publishes `value` to every rank after all writes that are ordered before it: by this thread, or
// by threads that a barrier joined to it. Pairs with await_flag and await_done.
AFDEP_DEVICE void store_release(uint32_t* flag, uint32_t value) {
  afdep_emu_store_release(flag, value, AFDEP_EMU_SYSTEM_SCOPE);
}
AFDEP_DEVICE uint32_t load_acquire(const uint32_t* flag) {
  return afdep_emu_load_acquire(flag, AFDEP_EMU_SYSTEM_SCOPE);
}

// The same in two steps, for several flags at once: the fence comes behind all writes that are
// ordered before it, and flags that this thread stores after it publish them.
AFDEP_DEVICE void fence_flags() { afdep_emu_fence_flags(); }
AFDEP_DEVICE void store_flag(uint32_t* flag, uint32_t value) { afdep_emu_store_flag(flag, value); }

// The same between threads of one GPU: for words of a rank's own workspace, which no other rank can
// address. Releases are cumulative: a release to every rank by the thread that acquired publishes
// what came before this one, too.
AFDEP_DEVICE void store_release_here(uint32_t* flag, uint32_t value) {
  afdep_emu_store_release(flag, value, AFDEP_EMU_GPU_SCOPE);
}
AFDEP_DEVICE uint32_t load_acquire_here(const uint32_t* flag) {
  return afdep_emu_load_acquire(flag, AFDEP_EMU_GPU_SCOPE);
}

// One packet into a peer's window; single-copy atomic, ordered with nothing.
AFDEP_DEVICE void store_packet(void* at, const Packet& packet) {
  afdep_emu_store_packet(at, &packet);
}
AFDEP_DEVICE Packet load_packet(const void* at) {
  Packet packet;
  afdep_emu_load_packet(at, &packet);
  return packet;
}

// Words that threads of one GPU share without order.
AFDEP_DEVICE uint32_t load_relaxed(const uint32_t* at) {
  return afdep_emu_load_relaxed(at, AFDEP_EMU_GPU_SCOPE);
}
// The word that tells a rank's waits to give up: what its kernels do then is not checked as if they
// had got what they awaited.
AFDEP_DEVICE uint32_t load_abort(const uint32_t* at) { return afdep_emu_load_abort(at); }
AFDEP_DEVICE void store_relaxed(uint32_t* at, uint32_t value) {
  afdep_emu_store_relaxed(at, value, AFDEP_EMU_GPU_SCOPE);
}

// True for the one thread of this GPU that takes `state`, in its own memory, from 0 to 1.
AFDEP_DEVICE bool claim(uint32_t* state) {
  return afdep_emu_claim(state, AFDEP_EMU_GPU_SCOPE) != 0;
}

// Takes the next number from a counter in this GPU's own memory. Who gets which is a matter of
// time: fit for sharing out work, not for choosing a place.
AFDEP_DEVICE uint32_t take(uint32_t* counter) {
  return afdep_emu_take(counter, AFDEP_EMU_GPU_SCOPE);
}

// Polls of a wait between two looks at the clock and the abort word: virtual time costs nothing to
// read.
constexpr uint32_t kPollsPerLook = 1;

// Looks at a word that the kernel before this one may be about to write, before the end of that
// kernel is awaited.
constexpr int kEarlyLooks = 2;

// A look along with each poll keeps a thread from sleeping until what it polls changes; a look
// after the last poll finds the same.
constexpr bool kLooksWithPolls = false;

// Marks a poll that found `seen` at `at` instead of what the wait is for. The thread sleeps until
// the word may have changed, another thread of its rank stores an abort word, or virtual time
// reaches the end of the wait.
AFDEP_DEVICE void poll_missed(const void* at, const Awaited& awaited, uint32_t seen,
                              uint32_t expected) {
  afdep_emu_poll_missed(at, awaited.phase, awaited.peer, awaited.item, seen, expected);
}

}  // namespace afdep
