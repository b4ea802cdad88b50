// What the memory model remembers of each piece of memory: who wrote it last, who read it since,
// and of atomic words and packets the values that a load may still return.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/emulator/memory_model.h"
#include "runtime/emulator/sites.h"
#include "runtime/emulator/vector_clock.h"

namespace afdep::emulator {

constexpr std::size_t kCellBytes = 16;

// One access; time 0: the host's, or nobody's.
struct Stamp {
  Agent agent = 0;
  Time time = 0;
  Site site = 0;
};

// Reads, or additions to a shared counter, at one time: by lanes of one warp, or by the async
// proxy.
struct Uses {
  Agent first = 0;          // the warp's lane 0; the proxy's agent
  Time time = 0;            // 0: none
  std::uint32_t lanes = 0;  // 0: by `first` itself
  Site site = 0;
  bool adds = false;
};

// Bytes that were only accessed together so far.
struct Unit {
  Stamp write;
  Uses use;
  std::unique_ptr<std::vector<Uses>> more;

  Unit() = default;
  Unit(const Unit& other);
  Unit& operator=(const Unit&) = delete;
  Unit(Unit&&) = default;
  Unit& operator=(Unit&&) = default;
  ~Unit() = default;
};

// One store to an atomic word or packet.
struct Message {
  std::array<std::uint32_t, 4> value{};
  Stamp writer;
  std::uint32_t skips = 0;  // how many loads may still pass it over
  bool releases = false;    // an acquire that reads it joins `order`
  int rank = -1;
  Scope scope = Scope::kSystem;
  ClockRef order;   // what comes before it, if it releases
  ClockRef fenced;  // and what of that a proxy fence covers
  // What its writer had observed; until somebody asks, without the writer's own last acts.
  ClockRef seen;
  bool seen_whole = true;
  Time seen_time = 0;  // of the writer's own loads; 0: its warp knows of all
  Time seen_warp_time = 0;
  Time block_time = 0;
};

// The newest load of an atomic location by one thread.
struct Reader {
  Stamp stamp;
  std::uint32_t message = 0;  // number of the message read
  std::uint32_t by = 0;  // number of the message that may have overwritten it too early; 0: none
};

// The newest load of a word.
struct ScopedRead {
  Stamp stamp;
  int rank = -1;  // -1: none
  Scope scope = Scope::kSystem;
};

// Loads of a word that stores of other ranks may not overlap with: the newest of less than system
// scope, the newest of all, and the newest by another rank than that.
struct ScopedReads {
  ScopedRead narrow, newest, elsewhere;
};

struct AtomicLocation {
  bool used = false;
  std::uint32_t first = 1;       // number of history.front()
  std::vector<Message> history;  // oldest first; the newest is what memory holds
  std::vector<Reader> readers;
};

struct Atomics {
  AtomicLocation packet;
  std::array<AtomicLocation, 4> word;
  std::unique_ptr<std::array<ScopedReads, 4>> reads;  // of the words, once there are any
};

struct Cell {
  Unit whole;
  std::vector<Unit> parts;  // 4 or 16, once accesses were smaller than the cell
  std::unique_ptr<Atomics> atomics;
};

// By address. Memory that nobody accessed has no cell.
class Shadow {
 public:
  Cell& cell(const void* at);
  [[nodiscard]] Cell* find(const void* at);
  void forget(const void* at, std::size_t bytes);
  void clear();

  // The units of a cell that hold [at, at + bytes), split as far as that takes.
  static std::pair<Unit*, Unit*> units(Cell& cell, const void* at, std::size_t bytes);

 private:
  static constexpr int kPageBits = 10;
  static constexpr std::size_t kPageCells = (std::size_t{1} << kPageBits) / kCellBytes;
  static constexpr std::size_t kCached = 256;
  using Page = std::array<Cell, kPageCells>;

  Page* find_page(std::uintptr_t number);

  struct Cached {
    std::uintptr_t number = 0;
    Page* page = nullptr;
  };
  std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
  std::array<Cached, kCached> cache_{};
};

}  // namespace afdep::emulator
