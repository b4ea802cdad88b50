// Generations within a rank, and addresses within windows.
#pragma once

#include "afdep/abi.h"
#include "afdep/generation.h"
#include "afdep/memory.cuh"
#include "afdep/route.cuh"
#include "afdep/thread.cuh"
#include "afdep/wait.cuh"

namespace afdep {

// Byte address of item `index`.
AFDEP_DEVICE uint8_t* at(uint8_t* base, int64_t index, int64_t item_bytes) {
  return base + index * item_bytes;
}
AFDEP_DEVICE const uint8_t* at(const uint8_t* base, int64_t index, int64_t item_bytes) {
  return base + index * item_bytes;
}

// The generation that dispatch or receive opens. Its last act is mark_started: collect or reply
// reads that.
AFDEP_DEVICE uint32_t opened_generation(const CommonArgs& args) {
  return next_generation(load_word(&args.control->finished));
}
AFDEP_DEVICE void mark_started(const CommonArgs& args, uint32_t generation) {
  if (block_index() == 0 && thread_index() == 0) store_word(&args.control->started, generation);
}

// The generation that collect or reply completes. Its last act is mark_finished: the next exchange
// reads that. `block`: which block does it.
AFDEP_DEVICE uint32_t started_generation(const CommonArgs& args) {
  return load_word(&args.control->started);
}
AFDEP_DEVICE void mark_finished(const CommonArgs& args, uint32_t generation, int block = 0) {
  if (block_index() == block && thread_index() == 0) {
    store_relaxed(&args.control->finished, generation);
    store_word(&args.control->route_claimed, 0);
  }
}

// By reply, before it awaits receive: the generation that it is about to complete. Receive awaited
// the reply before this one, so only a block of this grid that is through can have moved the word
// on; the answer then is a generation that nothing holds yet.
AFDEP_DEVICE uint32_t expected_generation(const CommonArgs& args) {
  return next_generation(load_relaxed(&args.control->finished));
}

// A warp waits for the done words of all kPeers peers; then every lane may write into their
// inboxes.
template <int kPeers>
AFDEP_DEVICE void await_all_done(const CommonArgs& args, const uint8_t* done_words,
                                 uint32_t generation) {
  for (int peer = lane_index(); peer < kPeers; peer += 32) {
    await_done(args, reinterpret_cast<const uint32_t*>(done_words) + peer, generation,
               static_cast<uint32_t>(peer));
  }
  sync_warp();  // the other lanes' stores come after the acquires above
}

// Lane i: the done words of peers i, i + 32, ... as they were at a first look.
template <int kPeers>
struct DoneLook {
  uint32_t seen[(kPeers + 31) / 32];
};

// By a warp. Workers write done words whatever this rank's stream does, so a kernel may look before
// it awaits the one before it.
template <int kPeers>
AFDEP_DEVICE DoneLook<kPeers> look_at_all_done(const uint8_t* done_words) {
  DoneLook<kPeers> look{};
#pragma unroll
  for (int i = 0; i < (kPeers + 31) / 32; ++i) {
    const int peer = i * 32 + lane_index();
    if (peer < kPeers) {
      look.seen[i] = load_acquire(reinterpret_cast<const uint32_t*>(done_words) + peer);
    }
  }
  return look;
}

// As above, for those words that the first look found too old.
template <int kPeers>
AFDEP_DEVICE void await_all_done(const CommonArgs& args, const uint8_t* done_words,
                                 uint32_t generation, const DoneLook<kPeers>& look) {
#pragma unroll
  for (int i = 0; i < (kPeers + 31) / 32; ++i) {
    const int peer = i * 32 + lane_index();
    if (peer < kPeers && !is_done(look.seen[i], generation)) {
      await_done(args, reinterpret_cast<const uint32_t*>(done_words) + peer, generation,
                 static_cast<uint32_t>(peer));
    }
  }
  sync_warp();  // the other lanes' stores come after the acquires of the look and above
}

// The lanes for which something holds; the same answer on every lane. NVRTC declares a ballot of
// its own outside the namespace, which a kernel's text would find, too.
AFDEP_DEVICE uint32_t lanes_that(bool holds) { return ballot(holds); }

// Whether a flag holds `generation` now; then what it covers is visible to this thread.
AFDEP_DEVICE bool flag_is(const uint8_t* flag, uint32_t generation) {
  return load_acquire(reinterpret_cast<const uint32_t*>(flag)) == generation;
}

// One thread waits for a flag at a byte address; what it covers is then visible to it, and behind a
// barrier to others.
AFDEP_DEVICE bool await_flag_at(const CommonArgs& args, const uint8_t* flag, uint32_t generation,
                                const Awaited& awaited) {
  return await_flag(args, reinterpret_cast<const uint32_t*>(flag), generation, awaited);
}

// All lanes of a warp wait for one flag; the same answer on every lane. False: what the flag covers
// must not be used.
AFDEP_DEVICE bool await_flag_by_warp(const CommonArgs& args, const uint8_t* flag,
                                     uint32_t generation, const Awaited& awaited) {
  const bool arrived =
      await_flag(args, reinterpret_cast<const uint32_t*>(flag), generation, awaited);
  return ballot(arrived) == kAllLanes;
}

// A warp waits for the flags of all workers that reply to a token. False, on every lane, if there
// are none or a wait gave up: the replies must not be used.
AFDEP_DEVICE bool await_replies(const CommonArgs& args, const uint8_t* flag_of_worker_0,
                                int64_t worker_bytes, const Destinations& from, int token,
                                uint32_t generation) {
  bool arrived = true;
  for (int worker = lane_index(); worker < kMaxRanks; worker += 32) {
    if (!from.includes(worker)) continue;
    const uint8_t* const flag = flag_of_worker_0 + worker * worker_bytes;
    arrived &= await_flag(
        args, reinterpret_cast<const uint32_t*>(flag), generation,
        Awaited{kPhaseReply, static_cast<uint32_t>(worker), static_cast<uint32_t>(token)});
  }
  const bool all = ballot(arrived) == kAllLanes;
  sync_warp();  // every lane's loads come after all lanes' acquires
  return all && !from.empty();
}

AFDEP_DEVICE void release_flag(uint8_t* flag, uint32_t generation) {
  store_release(reinterpret_cast<uint32_t*>(flag), generation);
}

// Behind fence_flags, which published what the flag says.
AFDEP_DEVICE void store_flag_at(uint8_t* flag, uint32_t generation) {
  store_flag(reinterpret_cast<uint32_t*>(flag), generation);
}

}  // namespace afdep
