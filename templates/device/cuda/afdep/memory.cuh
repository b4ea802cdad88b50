// Global memory: ordinary accesses, packets, and the release and acquire of flag words.
// Source: PTX ISA, "Memory Consistency Model"; its scalar data types: a .b128 access is single-copy
// atomic, a vector is not.
#pragma once

#include "afdep/thread.cuh"
#include "afdep/types.h"
#include "afdep/units.h"

namespace afdep {

// Tensors that no kernel writes while this one runs.
AFDEP_DEVICE uint32_t load_input_word(const void* at) {
  uint32_t value;
  asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value) : "l"(at));
  return value;
}
AFDEP_DEVICE uint64_t load_input_word64(const void* at) {
  uint64_t value;
  asm volatile("ld.global.nc.u64 %0, [%1];" : "=l"(value) : "l"(at));
  return value;
}
AFDEP_DEVICE Vector load_input_vector(const void* at) {
  Vector v;
  asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(at));
  return v;
}

// The same address, in a register from here on: else the compiler adds it up anew at every use.
template <typename T>
AFDEP_DEVICE T* kept(T* address) {
  asm("" : "+l"(address));
  return address;
}

// Ordinary (weak) accesses: ordered only by barriers, kernel order, and the release and acquire
// below.
AFDEP_DEVICE uint32_t load_word(const void* at) {
  uint32_t value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
AFDEP_DEVICE Vector load_vector(const void* at) {
  Vector v;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "l"(at)
               : "memory");
  return v;
}
AFDEP_DEVICE void store_word(void* at, uint32_t value) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
AFDEP_DEVICE void store_vector(void* at, const Vector& v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.word[0]), "r"(v.word[1]),
               "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}

// Publishes `value` to every rank after all writes that are ordered before it: by this thread, or
// by threads that a barrier joined to it. Pairs with await_flag and await_done.
AFDEP_DEVICE void store_release(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
AFDEP_DEVICE uint32_t load_acquire(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// The same in two steps, for several flags at once: the fence comes behind all writes that are
// ordered before it, and flags that this thread stores after it publish them.
AFDEP_DEVICE void fence_flags() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }
AFDEP_DEVICE void store_flag(uint32_t* flag, uint32_t value) {
  asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// The same between threads of one GPU: for words of a rank's own workspace. Releases are
// cumulative: a release to every rank by the thread that acquired publishes what came before this
// one, too.
AFDEP_DEVICE void store_release_here(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
AFDEP_DEVICE uint32_t load_acquire_here(const uint32_t* flag) {
  uint32_t value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

// One packet into a peer's window; single-copy atomic, ordered with nothing.
AFDEP_DEVICE void store_packet(void* at, const Packet& packet) {
  asm volatile(
      "{\n\t.reg .b128 p;\n\t.reg .b64 low, high;\n\t"
      "mov.b64 low, {%1, %2};\n\tmov.b64 high, {%3, %4};\n\tmov.b128 p, {low, high};\n\t"
      "st.relaxed.sys.global.b128 [%0], p;\n\t}" ::"l"(at),
      "r"(packet.word[0]), "r"(packet.word[1]), "r"(packet.word[2]), "r"(packet.generation)
      : "memory");
}
AFDEP_DEVICE Packet load_packet(const void* at) {
  Packet packet;
  asm volatile(
      "{\n\t.reg .b128 p;\n\t.reg .b64 low, high;\n\t"
      "ld.relaxed.sys.global.b128 p, [%4];\n\tmov.b128 {low, high}, p;\n\t"
      "mov.b64 {%0, %1}, low;\n\tmov.b64 {%2, %3}, high;\n\t}"
      : "=r"(packet.word[0]), "=r"(packet.word[1]), "=r"(packet.word[2]), "=r"(packet.generation)
      : "l"(at)
      : "memory");
  return packet;
}

// Words that threads of one GPU share without order.
AFDEP_DEVICE uint32_t load_relaxed(const uint32_t* at) {
  uint32_t value;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}
// The word that tells a rank's waits to give up.
AFDEP_DEVICE uint32_t load_abort(const uint32_t* at) { return load_relaxed(at); }
AFDEP_DEVICE void store_relaxed(uint32_t* at, uint32_t value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// True for the one thread of this GPU that takes `state`, in its own memory, from 0 to 1.
AFDEP_DEVICE bool claim(uint32_t* state) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], 0, 1;"
               : "=r"(before)
               : "l"(state)
               : "memory");
  return before == 0;
}

// Takes the next number from a counter in this GPU's own memory. Who gets which is a matter of
// time: fit for sharing out work, not for choosing a place.
AFDEP_DEVICE uint32_t take(uint32_t* counter) {
  uint32_t taken;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(taken)
               : "l"(counter)
               : "memory");
  return taken;
}

// Polls of a wait between two looks at the clock and the abort word: a look costs a trip to device
// memory.
constexpr uint32_t kPollsPerLook = 256;

// Looks at a word that the kernel before this one may be about to write, before the end of that
// kernel is awaited: about 50 microseconds.
constexpr int kEarlyLooks = 100;

// A poll may take a look at something else along, whose load then travels with the poll's.
constexpr bool kLooksWithPolls = true;

// Marks a poll that found `seen` at `at` instead of what the wait is for. On a GPU a poll costs
// nothing more.
AFDEP_DEVICE void poll_missed(const void* /*at*/, const Awaited& /*awaited*/, uint32_t /*seen*/,
                              uint32_t /*expected*/) {}

}  // namespace afdep
