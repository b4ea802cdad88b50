#include "runtime/emulator/hooks.h"

#include <array>
#include <cstdint>
#include <cstring>

#include "runtime/emulator/scheduler.h"

namespace afdep::emulator {
namespace {

using enum Scheduler::AccessKind;

// Every hook but block_index and thread_index ends with the number of its place in the emitted
// text, which instrument.cpp adds to the call.
template <typename Value>
Value load(Scheduler::AccessKind kind, const void* at, Site site, Scope scope = Scope::kThread) {
  Thread& self = *current_thread();
  Value value{};
  self.scheduler->access(self, kind, scope, at, &value, sizeof value, site);
  return value;
}

void load16(Scheduler::AccessKind kind, const void* at, void* value, Site site,
            Scope scope = Scope::kThread) {
  Thread& self = *current_thread();
  self.scheduler->access(self, kind, scope, at, value, 16, site);
}

void store4(Scheduler::AccessKind kind, void* at, std::uint32_t value, Site site,
            Scope scope = Scope::kThread) {
  Thread& self = *current_thread();
  self.scheduler->access(self, kind, scope, at, &value, sizeof value, site);
}

void store16(Scheduler::AccessKind kind, void* at, const void* value, Site site,
             Scope scope = Scope::kThread) {
  Thread& self = *current_thread();
  // A store only reads it.
  self.scheduler->access(self, kind, scope, at, const_cast<void*>(value), 16, site);
}

std::uint32_t meet(Collective kind, std::uint32_t value, std::uint32_t operand, Site site) {
  Thread& self = *current_thread();
  return self.scheduler->collective(self, kind, value, operand, site);
}

// ---- thread.cuh ----

std::int32_t block_index() { return current_thread()->id.block; }
std::int32_t thread_index() { return current_thread()->id.thread; }
void sync_block(Site site) {
  Thread& self = *current_thread();
  self.scheduler->sync_block(self, site);
}
void sync_warp(Site site) { meet(Collective::kSync, 0, 0, site); }
std::uint32_t ballot(std::uint32_t predicate, Site site) {
  return meet(Collective::kBallot, predicate, 0, site);
}
std::uint32_t match(std::uint32_t value, Site site) {
  return meet(Collective::kMatch, value, 0, site);
}
std::uint32_t reduce_or(std::uint32_t value, Site site) {
  return meet(Collective::kReduceOr, value, 0, site);
}
std::uint32_t shuffle(std::uint32_t value, std::int32_t lane, Site site) {
  return meet(Collective::kShuffle, value, static_cast<std::uint32_t>(lane), site);
}
std::uint32_t shuffle_up(std::uint32_t value, std::int32_t delta, Site site) {
  return meet(Collective::kShuffleUp, value, static_cast<std::uint32_t>(delta), site);
}
void await_previous_kernel(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->await_previous_kernel(self);
}
void release_next_kernel(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->release_next_kernel(self);
}
void* shared_memory(std::size_t bytes, Site site) {
  Thread& self = *current_thread();
  return self.scheduler->shared_memory(self, bytes, site);
}
void add_shared(std::uint32_t* counter, std::uint32_t amount, Site site) {
  Thread& self = *current_thread();
  self.scheduler->add_shared(self, counter, amount, site);
}
std::uint32_t take_shared(std::uint32_t* counter, std::uint32_t amount, Site site) {
  Thread& self = *current_thread();
  return self.scheduler->add_shared(self, counter, amount, site);
}
void trap(Site site) {
  Thread& self = *current_thread();
  Fault fault;
  fault.kind = Fault::Kind::kTrap;
  self.scheduler->stop(self, fault, site);
}
std::uint64_t clock_ns(Site /*site*/) {
  Thread& self = *current_thread();
  return self.scheduler->clock_ns(self);
}

// ---- clocks.cuh ----

std::uint64_t schedule_ns(Site /*site*/) {
  Thread& self = *current_thread();
  return self.scheduler->schedule_ns();
}

// ---- memory.cuh ----

std::uint32_t load_input_word(const void* at, Site site) {
  return load<std::uint32_t>(kLoadInput, at, site);
}
std::uint64_t load_input_word64(const void* at, Site site) {
  return load<std::uint64_t>(kLoadInput, at, site);
}
void load_input_vector(const void* at, void* value, Site site) {
  load16(kLoadInput, at, value, site);
}
std::uint32_t load_word(const void* at, Site site) { return load<std::uint32_t>(kLoad, at, site); }
void load_vector(const void* at, void* value, Site site) { load16(kLoad, at, value, site); }
void store_word(void* at, std::uint32_t value, Site site) { store4(kStore, at, value, site); }
void store_vector(void* at, const void* value, Site site) { store16(kStore, at, value, site); }
void store_release(void* flag, std::uint32_t value, Scope scope, Site site) {
  store4(kRelease, flag, value, site, scope);
}
std::uint32_t load_acquire(const void* flag, Scope scope, Site site) {
  return load<std::uint32_t>(kAcquire, flag, site, scope);
}
void fence_flags(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->fence_flags(self);
}
void store_flag(void* flag, std::uint32_t value, Site site) {
  store4(kStoreFlag, flag, value, site, Scope::kSystem);
}
void store_packet(void* at, const void* packet, Site site) {
  store16(kStorePacket, at, packet, site, Scope::kSystem);
}
void load_packet(const void* at, void* packet, Site site) {
  load16(kLoadPacket, at, packet, site, Scope::kSystem);
}
std::uint32_t load_relaxed(const void* at, Scope scope, Site site) {
  return load<std::uint32_t>(kLoadRelaxed, at, site, scope);
}
std::uint32_t load_abort(const void* at, Site site) {
  return load<std::uint32_t>(kLoadAbort, at, site, Scope::kGpu);
}
void store_relaxed(void* at, std::uint32_t value, Scope scope, Site site) {
  store4(kStoreRelaxed, at, value, site, scope);
}
std::uint32_t claim(void* state, Scope scope, Site site) {
  return load<std::uint32_t>(kClaim, state, site, scope);
}
std::uint32_t take(void* counter, Scope scope, Site site) {
  return load<std::uint32_t>(kTake, counter, site, scope);
}
void poll_missed(const void* at, std::uint32_t phase, std::uint32_t peer, std::uint32_t item,
                 std::uint32_t seen, std::uint32_t expected, Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->poll_missed(self, Wait{at, phase, peer, item, seen, expected});
}

// ---- bulk.cuh ----

void init_barrier(void* barrier, Site site) {
  Thread& self = *current_thread();
  self.scheduler->init_barrier(self, barrier, site);
}
void publish_barriers(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->publish_barriers(self);
}
void bulk_load(void* to, const void* from, std::uint32_t bytes, void* barrier, Site site) {
  Thread& self = *current_thread();
  self.scheduler->bulk_load(self, to, from, bytes, barrier, site);
}
void await_barrier(void* barrier, std::uint32_t parity, Site site) {
  Thread& self = *current_thread();
  self.scheduler->await_barrier(self, barrier, parity, site);
}
void arrive_barrier(void* barrier, Site site) {
  Thread& self = *current_thread();
  self.scheduler->arrive_barrier(self, barrier, site);
}
std::uint32_t barrier_passed(void* barrier, std::uint32_t parity, Site site) {
  Thread& self = *current_thread();
  return self.scheduler->barrier_passed(self, barrier, parity, site) ? 1 : 0;
}
void bulk_store(void* to, const void* from, std::uint32_t bytes, Site site) {
  Thread& self = *current_thread();
  self.scheduler->bulk_store(self, to, from, bytes, site);
}
void bulk_commit(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->bulk_commit(self);
}
void bulk_await_read(std::uint32_t pending, Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->bulk_await_groups(self, pending, true);
}
void bulk_await(std::uint32_t pending, Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->bulk_await_groups(self, pending, false);
}
void fence_bulk_global(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->fence_bulk(self, MemorySpace::kGlobal);
}
void fence_bulk_shared(Site /*site*/) {
  Thread& self = *current_thread();
  self.scheduler->fence_bulk(self, MemorySpace::kShared);
}

// ---- what instrument.cpp found ----

void raw_load(const void* at, std::uint64_t bytes, Site site) {
  Thread& self = *current_thread();
  self.scheduler->raw_access(self, at, bytes, false, site);
}
void raw_store(const void* at, std::uint64_t bytes, Site site) {
  Thread& self = *current_thread();
  self.scheduler->raw_access(self, at, bytes, true, site);
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
      hook("afdep_emu_take_shared", &take_shared),
      hook("afdep_emu_trap", &trap),
      hook("afdep_emu_clock_ns", &clock_ns),
      hook("afdep_emu_schedule_ns", &schedule_ns),
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
      hook("afdep_emu_load_abort", &load_abort),
      hook("afdep_emu_store_relaxed", &store_relaxed),
      hook("afdep_emu_fence_flags", &fence_flags),
      hook("afdep_emu_store_flag", &store_flag),
      hook("afdep_emu_claim", &claim),
      hook("afdep_emu_take", &take),
      hook("afdep_emu_poll_missed", &poll_missed),
      hook("afdep_emu_init_barrier", &init_barrier),
      hook("afdep_emu_publish_barriers", &publish_barriers),
      hook("afdep_emu_bulk_load", &bulk_load),
      hook("afdep_emu_await_barrier", &await_barrier),
      hook("afdep_emu_arrive_barrier", &arrive_barrier),
      hook("afdep_emu_barrier_passed", &barrier_passed),
      hook("afdep_emu_bulk_store", &bulk_store),
      hook("afdep_emu_bulk_commit", &bulk_commit),
      hook("afdep_emu_bulk_await_read", &bulk_await_read),
      hook("afdep_emu_bulk_await", &bulk_await),
      hook("afdep_emu_fence_bulk_global", &fence_bulk_global),
      hook("afdep_emu_fence_bulk_shared", &fence_bulk_shared),
      hook("afdep_emu_raw_load", &raw_load),
      hook("afdep_emu_raw_store", &raw_store),
      hook("memcpy", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memcpy)),
      hook("memmove", static_cast<void* (*)(void*, const void*, std::size_t)>(&std::memmove)),
      hook("memset", static_cast<void* (*)(void*, int, std::size_t)>(&std::memset)),
  };
  return kHooks;
}

}  // namespace afdep::emulator
