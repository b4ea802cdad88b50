#include "runtime/emulator/hooks.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

using enum Scheduler::AccessKind;

template <typename Value>
Value load(Scheduler::AccessKind kind, const void* at) {
  Thread& self = *current_thread();
  Value value{};
  self.scheduler->access(self, kind, at, &value, sizeof value);
  return value;
}

void load16(Scheduler::AccessKind kind, const void* at, void* value) {
  Thread& self = *current_thread();
  self.scheduler->access(self, kind, at, value, 16);
}

void store4(Scheduler::AccessKind kind, void* at, std::uint32_t value) {
  Thread& self = *current_thread();
  self.scheduler->access(self, kind, at, &value, sizeof value);
}

void store16(Scheduler::AccessKind kind, void* at, const void* value) {
  Thread& self = *current_thread();
  // A store only reads it.
  self.scheduler->access(self, kind, at, const_cast<void*>(value), 16);
}

std::uint32_t meet(Collective kind, std::uint32_t value, std::uint32_t operand) {
  Thread& self = *current_thread();
  return self.scheduler->collective(self, kind, value, operand);
}

// ---- thread.cuh ----

std::int32_t block_index() { return current_thread()->id.block; }
std::int32_t thread_index() { return current_thread()->id.thread; }
void sync_block() {
  Thread& self = *current_thread();
  self.scheduler->sync_block(self);
}
void sync_warp() { meet(Collective::kSync, 0, 0); }
std::uint32_t ballot(std::uint32_t predicate) { return meet(Collective::kBallot, predicate, 0); }
std::uint32_t match(std::uint32_t value) { return meet(Collective::kMatch, value, 0); }
std::uint32_t reduce_or(std::uint32_t value) { return meet(Collective::kReduceOr, value, 0); }
std::uint32_t shuffle(std::uint32_t value, std::int32_t lane) {
  return meet(Collective::kShuffle, value, static_cast<std::uint32_t>(lane));
}
std::uint32_t shuffle_up(std::uint32_t value, std::int32_t delta) {
  return meet(Collective::kShuffleUp, value, static_cast<std::uint32_t>(delta));
}
void await_previous_kernel() {
  Thread& self = *current_thread();
  self.scheduler->await_previous_kernel(self);
}
void release_next_kernel() {
  Thread& self = *current_thread();
  self.scheduler->release_next_kernel(self);
}
void* shared_memory(std::size_t bytes) {
  Thread& self = *current_thread();
  return self.scheduler->shared_memory(self, bytes);
}
void add_shared(std::uint32_t* counter, std::uint32_t amount) {
  Thread& self = *current_thread();
  self.scheduler->add_shared(self, counter, amount);
}
void trap() {
  Thread& self = *current_thread();
  Fault fault;
  fault.kind = Fault::Kind::kTrap;
  self.scheduler->stop(self, fault);
}
std::uint64_t clock_ns() {
  Thread& self = *current_thread();
  return self.scheduler->clock_ns(self);
}

// ---- memory.cuh ----

std::uint32_t load_input_word(const void* at) { return load<std::uint32_t>(kLoadInput, at); }
std::uint64_t load_input_word64(const void* at) { return load<std::uint64_t>(kLoadInput, at); }
void load_input_vector(const void* at, void* value) { load16(kLoadInput, at, value); }
std::uint32_t load_word(const void* at) { return load<std::uint32_t>(kLoad, at); }
void load_vector(const void* at, void* value) { load16(kLoad, at, value); }
void store_word(void* at, std::uint32_t value) { store4(kStore, at, value); }
void store_vector(void* at, const void* value) { store16(kStore, at, value); }
void store_release(void* flag, std::uint32_t value) { store4(kRelease, flag, value); }
std::uint32_t load_acquire(const void* flag) { return load<std::uint32_t>(kAcquire, flag); }
void store_packet(void* at, const void* packet) { store16(kStorePacket, at, packet); }
void load_packet(const void* at, void* packet) { load16(kLoadPacket, at, packet); }
std::uint32_t load_relaxed(const void* at) { return load<std::uint32_t>(kLoadRelaxed, at); }
void store_relaxed(void* at, std::uint32_t value) { store4(kStoreRelaxed, at, value); }
std::uint32_t claim(void* state) { return load<std::uint32_t>(kClaim, state); }
void poll_missed(const void* at, std::uint32_t phase, std::uint32_t peer, std::uint32_t item,
                 std::uint32_t seen, std::uint32_t expected) {
  Thread& self = *current_thread();
  self.scheduler->poll_missed(self, Wait{at, phase, peer, item, seen, expected});
}

template <typename Function>
Hook hook(const char* name, Function* function) {
  return {name, reinterpret_cast<void*>(function)};
}

}  // namespace

std::span<const Hook> hooks() {
  static const std::array kHooks = {
      hook("afdep_emu_block_index", &block_index),
      hook("afdep_emu_thread_index", &thread_index),
      hook("afdep_emu_sync_block", &sync_block),
      hook("afdep_emu_sync_warp", &sync_warp),
      hook("afdep_emu_ballot", &ballot),
      hook("afdep_emu_match", &match),
      hook("afdep_emu_reduce_or", &reduce_or),
      hook("afdep_emu_shuffle", &shuffle),
      hook("afdep_emu_shuffle_up", &shuffle_up),
      hook("afdep_emu_await_previous_kernel", &await_previous_kernel),
      hook("afdep_emu_release_next_kernel", &release_next_kernel),
      hook("afdep_emu_shared_memory", &shared_memory),
      hook("afdep_emu_add_shared", &add_shared),
      hook("afdep_emu_trap", &trap),
      hook("afdep_emu_clock_ns", &clock_ns),
      hook("afdep_emu_load_input_word", &load_input_word),
      hook("afdep_emu_load_input_word64", &load_input_word64),
      hook("afdep_emu_load_input_vector", &load_input_vector),
      hook("afdep_emu_load_word", &load_word),
      hook("afdep_emu_load_vector", &load_vector),
      hook("afdep_emu_store_word", &store_word),
      hook("afdep_emu_store_vector", &store_vector),
      hook("afdep_emu_store_release", &store_release),
      hook("afdep_emu_load_acquire", &load_acquire),
      hook("afdep_emu_store_packet", &store_packet),
      hook("afdep_emu_load_packet", &load_packet),
      hook("afdep_emu_load_relaxed", &load_relaxed),
      hook("afdep_emu_store_relaxed", &store_relaxed),
      hook("afdep_emu_claim", &claim),
      hook("afdep_emu_poll_missed", &poll_missed),
      hook("memcpy", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy)),
      hook("memmove", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove)),
      hook("memset", static_cast<void* (*)(void*, int, std::size_t)>(&std::memset)),
  };
  return kHooks;
}

}  // namespace afdep::emulator
