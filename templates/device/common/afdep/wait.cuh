// Bounded waits and fault records.
// Source: docs/protocol.md, rules 3 and 4.
#pragma once

#include "afdep/abi.h"
#include "afdep/generation.h"
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"
#include "afdep/units.h"

namespace afdep {

// One thread's view of a wait that did not succeed at once.
struct Deadline {
  uint64_t start_ns;  // 0: the clock has not been read yet
  uint32_t polls;
};

// Counts a poll that missed. True when the wait must give up: it expired, which is recorded here
// and told to the rank's other waits through the abort word, or another wait did. kPatience: how
// many times the bound it waits.
template <uint32_t kPatience = 1>
AFDEP_DEVICE bool give_up(Deadline& deadline, const CommonArgs& args, const void* at,
                          const Awaited& awaited, uint32_t generation, uint32_t seen,
                          uint32_t expected) {
  poll_missed(at, awaited, seen, expected);
  if (__builtin_expect(++deadline.polls % kPollsPerLook != 0, 1)) return false;
  if (load_abort(&args.control->abort) != 0) return true;
  const uint64_t now = clock_ns();
  if (deadline.start_ns == 0) deadline.start_ns = now;
  if (now - deadline.start_ns < args.timeout_ns * kPatience) return false;
  // The abort word is also the claim to the record: host memory offers no atomics to a GPU behind
  // PCIe.
  if (claim(&args.control->abort)) {
    WaitFault* const fault = &args.faults->wait;
    store_word(&fault->phase, awaited.phase);
    store_word(&fault->peer, awaited.peer);
    store_word(&fault->generation, generation);
    store_word(&fault->seen, seen);
    store_word(&fault->expected, expected);
    store_word(&fault->item, awaited.item);
    store_release(&fault->state, 2);  // pairs with the host's acquire
  }
  return true;
}

// Waits until `flag` holds `generation`; then the writes released with it are visible to this
// thread. False if it gave up: what the flag covers must not be used.
AFDEP_DEVICE bool await_flag(const CommonArgs& args, const uint32_t* flag, uint32_t generation,
                             const Awaited& awaited) {
  uint32_t seen = load_acquire(flag);
  Deadline deadline{0, 0};
  while (seen != generation) {
    if (give_up(deadline, args, flag, awaited, generation, seen, generation)) return false;
    seen = load_acquire(flag);
  }
  return true;
}

// Whether a done word says that the peer has read everything sent to it two generations before
// `generation`. It then holds either of the last two, or this one: a warp that has nothing to send
// may ask when the rest of its kernel has sent all, and the peer has read it.
AFDEP_DEVICE bool is_done(uint32_t seen, uint32_t generation) {
  const uint32_t newest = previous_generation(generation);
  return seen == previous_generation(newest) || seen == newest || seen == generation;
}

// Waits until the done word says so.
AFDEP_DEVICE void await_done(const CommonArgs& args, const uint32_t* done, uint32_t generation,
                             uint32_t peer) {
  const uint32_t oldest = previous_generation(previous_generation(generation));
  uint32_t seen = load_acquire(done);
  Deadline deadline{0, 0};
  while (!is_done(seen, generation)) {
    if (give_up(deadline, args, done, Awaited{kPhaseDone, peer, 0}, generation, seen, oldest))
      return;
    seen = load_acquire(done);
  }
}

// Records the first bad id of this rank since the host last looked.
AFDEP_DEVICE void report_route(const CommonArgs& args, RouteError error, uint32_t generation,
                               uint32_t token, uint32_t choice, int64_t value) {
  // Claimed once an exchange, in device memory: host memory offers no atomics to a GPU behind PCIe.
  // mark_finished gives the claim back.
  if (!claim(&args.control->route_claimed)) return;
  RouteFault* const fault = &args.faults->route;
  if (load_acquire(&fault->state) != 0) return;  // the host has not read an earlier record yet
  store_word(&fault->error, error);
  store_word(&fault->generation, generation);
  store_word(&fault->token, token);
  store_word(&fault->choice, choice);
  uint32_t* const halves = reinterpret_cast<uint32_t*>(&fault->value);
  store_word(halves, static_cast<uint32_t>(static_cast<uint64_t>(value)));
  store_word(halves + 1, static_cast<uint32_t>(static_cast<uint64_t>(value) >> 32));
  store_release(&fault->state, 2);  // pairs with the host's acquire
}

}  // namespace afdep
