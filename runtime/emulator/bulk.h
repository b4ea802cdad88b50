// The async proxy of a block: bulk copies between global and shared memory, the barriers and groups
// that wait for them. Plain state; bulk.cpp changes it.
// Source: PTX ISA, "Data Movement and Conversion Instructions: cp.async.bulk",
// "Parallel Synchronization and Communication Instructions: mbarrier", "Proxies".
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/emulator/sites.h"

namespace afdep::emulator {

struct Block;
struct Thread;

constexpr std::size_t kBulkAlignment = 16;
// Of one block: what the memory model has numbers for.
constexpr std::size_t kMaxBulkBarriers = 900;

struct BulkBarrierState {
  std::uintptr_t address = 0;
  const Thread* made_by = nullptr;
  bool published = false;
  // Of the current phase: it has its one arrival, a load, and completes once that many bytes came.
  // An arrival without a load completes it at once.
  bool arrived = false;
  std::uint32_t missing_bytes = 0;
  std::uint32_t phase = 0;    // phases completed
  std::uint32_t loaded = 0;   // the newest phase that has a load, numbered from 1
  std::uint32_t awaited = 0;  // the newest of them that a thread waited for
  bool looked_at = false;     // by barrier_passed
};

// A committed or open group of one thread's stores.
struct BulkGroup {
  std::uint32_t number = 0;  // of the thread's, from 1
  bool committed = false;
  std::uint32_t unread = 0;      // copies that have not read all of their source
  std::uint32_t incomplete = 0;  // copies that have not written all of their destination
};

// Of one thread.
struct BulkGroups {
  std::vector<BulkGroup> open;  // those that are incomplete, and the uncommitted one; ascending
  std::uint32_t committed = 0;  // how many so far
  std::uint32_t used = 0;       // the newest group that has a copy
  std::uint32_t awaited = 0;    // the newest group that the thread waited for, to its read at least
};

// A copy under way: first it reads its source, some time later it writes its destination.
struct BulkCopy {
  static constexpr std::uint32_t kNoBarrier = UINT32_MAX;

  Block* block = nullptr;
  std::uint32_t thread = 0;            // index of the issuing thread within the block
  std::uint32_t barrier = kNoBarrier;  // of a load: index within the block
  std::uint32_t group = 0;             // of a store
  void* to = nullptr;
  const void* from = nullptr;
  std::uint32_t bytes = 0;
  bool read = false;
  std::vector<std::byte> data;  // between its read and its write
};

// What a thread waits for in await_barrier, bulk_await_read, bulk_await or, between two looks, in
// barrier_passed.
struct BulkWait {
  enum class Kind : std::uint8_t { kBarrier, kRead, kComplete, kChange };

  Kind kind = Kind::kBarrier;
  std::uint32_t barrier = 0;  // index within the block
  std::uint32_t parity = 0;
  std::uint32_t group = 0;  // kRead, kComplete: this group and all before it
  std::uint64_t seen = 0;   // kChange: another count of looked_changes than this
};

}  // namespace afdep::emulator
