// The emulator's device memory: which addresses exist, whose they are, and which of them a rank may
// write.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::emulator {

// A part of memory that a rank may write, [begin, end), under the plan's name for it.
struct WritableRange {
  const void* begin = nullptr;
  const void* end = nullptr;
  std::string name;
  bool done_words = false;  // for the ledger
};

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;  // as asked for; the pages behind it are mapped but not part of it
  std::size_t mapped_bytes = 0;
  std::uint64_t number = 0;  // 1, 2, ... in the order of allocation
  int owner = -1;            // rank, for the ledger and messages; -1: nobody said
  std::string name;          // may be empty
  bool shared_with_host = false;

  [[nodiscard]] bool holds(std::uintptr_t at, std::size_t size) const {
    return at >= begin && size <= bytes && at - begin <= bytes - size;
  }
};

// Not safe to use from several threads at once: the backend's lock guards it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Zeroed, page-aligned, no page of it used before it is touched. kMemory if the process may map
  // no more.
  Result<void*> allocate(std::size_t bytes);
  // The same, of memory that the host reads and writes while kernels run.
  Result<void*> allocate_host_mapped(std::size_t bytes);
  // False if `memory` was not returned by one of these, or was freed.
  bool free(const void* memory);
  // Names an allocation and its rank; false as above. `memory` is what allocate() returned.
  bool describe(const void* memory, std::string name, int owner);

  // The allocation that holds all of [at, at + size); null if none does.
  [[nodiscard]] const Allocation* find(const void* at, std::size_t size) {
    const auto address = reinterpret_cast<std::uintptr_t>(at);
    // No two allocations share a page.
    const Allocation* const cached = cache_[address >> kPageBits & (kCacheSize - 1)];
    if (cached != nullptr && cached->holds(address, size)) return cached;
    return find_slow(address, size);
  }

  // From now on stores of `rank` outside `ranges` are errors. No ranges: no store is allowed.
  void restrict_stores(int rank, std::vector<WritableRange> ranges);
  void allow_all_stores() {
    writable_.clear();
    foreign_.clear();
  }
  [[nodiscard]] bool may_store(int rank, const void* at, std::size_t size) const {
    return writable_.empty() || may_store_slow(rank, at, size);
  }

  // The same for stores into memory that another rank owns, and for those alone.
  void restrict_foreign_stores(int rank, std::vector<WritableRange> ranges);
  enum class Foreign : std::uint8_t { kAllowed, kDoneWord, kRefused };
  [[nodiscard]] Foreign foreign_store(int rank, const void* at, std::size_t size) const;

  // "rank 1 row_packets+0x40", "window of rank 1+0x40", "allocation 3+0x40" or, for memory that
  // nobody allocated, the plain address and the nearest allocation.
  [[nodiscard]] std::string describe_address(const void* at) const;

 private:
  static constexpr int kPageBits = 12;
  static constexpr std::size_t kCacheSize = 512;

  struct Range {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::string name;
    bool done_words;
  };
  using RangesByRank = std::map<int, std::vector<Range>>;  // ranges ascending

  static std::vector<Range> sorted(std::vector<WritableRange> ranges);
  // The range that covers the store, or null.
  static const Range* covering(const std::vector<Range>& ranges, const void* at, std::size_t size);
  [[nodiscard]] bool may_store_slow(int rank, const void* at, std::size_t size) const;
  const Allocation* find_slow(std::uintptr_t at, std::size_t size);

  std::map<std::uintptr_t, Allocation> allocations_;  // by begin
  std::array<const Allocation*, kCacheSize> cache_{};
  RangesByRank writable_;
  RangesByRank foreign_;
  std::uint64_t numbers_ = 0;
};

}  // namespace afdep::emulator
