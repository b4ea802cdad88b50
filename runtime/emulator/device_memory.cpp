#include "runtime/emulator/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace afdep::emulator {
namespace {

std::size_t page_bytes() {
  static const std::size_t kBytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return kBytes;
}

std::uint64_t free_bytes() {
  const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_AVPHYS_PAGES)));
  return pages * page_bytes();
}

std::string label(const Allocation& allocation) {
  std::string text =
      allocation.name.empty() ? fmt::format("allocation {}", allocation.number) : allocation.name;
  if (allocation.owner >= 0) text += fmt::format(" of rank {}", allocation.owner);
  return text;
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  for (const auto& [begin, allocation] : allocations_) {
    munmap(reinterpret_cast<void*>(begin), allocation.mapped_bytes);
  }
}

Result<void*> DeviceMemory::allocate(std::size_t bytes) {
  const std::size_t wanted = std::max<std::size_t>(bytes, 1);
  const auto fail = [bytes](int error) {
    return Failure(ErrorCode::kMemory,
                   fmt::format("cannot allocate {} bytes of emulated device memory: {}; {} bytes "
                               "are free",
                               bytes, std::strerror(error), free_bytes()),
                   "reduce capacity, buckets or ranks");
  };
  if (wanted > SIZE_MAX - page_bytes()) return fail(ENOMEM);
  const std::size_t mapped = (wanted + page_bytes() - 1) / page_bytes() * page_bytes();
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return fail(errno);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  allocations_[begin] = {begin, bytes, mapped, ++numbers_, -1, {}, false};
  return memory;
}

Result<void*> DeviceMemory::allocate_host_mapped(std::size_t bytes) {
  Result<void*> memory = allocate(bytes);
  if (memory.ok()) {
    allocations_[reinterpret_cast<std::uintptr_t>(*memory)].shared_with_host = true;
  }
  return memory;
}

bool DeviceMemory::free(const void* memory) {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == allocations_.end()) return false;
  munmap(const_cast<void*>(memory), found->second.mapped_bytes);
  allocations_.erase(found);
  cache_.fill(nullptr);
  return true;
}

bool DeviceMemory::describe(const void* memory, std::string name, int owner) {
  const auto found = allocations_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == allocations_.end()) return false;
  found->second.name = std::move(name);
  found->second.owner = owner;
  return true;
}

const Allocation* DeviceMemory::find_slow(std::uintptr_t at, std::size_t size) {
  auto after = allocations_.upper_bound(at);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& allocation = std::prev(after)->second;
  if (!allocation.holds(at, size)) return nullptr;
  cache_[at >> kPageBits & (kCacheSize - 1)] = &allocation;
  return &allocation;
}

std::vector<DeviceMemory::Range> DeviceMemory::sorted(std::vector<WritableRange> ranges) {
  std::vector<Range> sorted;
  for (WritableRange& range : ranges) {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.begin);
    const auto end = reinterpret_cast<std::uintptr_t>(range.end);
    if (begin < end) sorted.push_back({begin, end, std::move(range.name), range.done_words});
  }
  std::ranges::sort(sorted, {}, &Range::begin);
  return sorted;
}

const DeviceMemory::Range* DeviceMemory::covering(const std::vector<Range>& ranges, const void* at,
                                                  std::size_t size) {
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  auto after = std::ranges::upper_bound(ranges, begin, {}, &Range::begin);
  // Ranges may overlap or nest; any one that covers the store will do.
  while (after != ranges.begin()) {
    --after;
    if (begin + size <= after->end) return &*after;
  }
  return nullptr;
}

void DeviceMemory::restrict_stores(int rank, std::vector<WritableRange> ranges) {
  writable_[rank] = sorted(std::move(ranges));
}

bool DeviceMemory::may_store_slow(int rank, const void* at, std::size_t size) const {
  const auto restricted = writable_.find(rank);
  return restricted == writable_.end() || covering(restricted->second, at, size) != nullptr;
}

void DeviceMemory::restrict_foreign_stores(int rank, std::vector<WritableRange> ranges) {
  foreign_[rank] = sorted(std::move(ranges));
}

DeviceMemory::Foreign DeviceMemory::foreign_store(int rank, const void* at,
                                                  std::size_t size) const {
  const auto restricted = foreign_.find(rank);
  if (restricted == foreign_.end()) return Foreign::kAllowed;
  const Range* const range = covering(restricted->second, at, size);
  if (range == nullptr) return Foreign::kRefused;
  return range->done_words ? Foreign::kDoneWord : Foreign::kAllowed;
}

std::string DeviceMemory::describe_address(const void* at) const {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  for (const RangesByRank* const by_rank : {&writable_, &foreign_}) {
    for (const auto& [rank, ranges] : *by_rank) {
      for (const Range& range : ranges) {
        if (address >= range.begin && address < range.end) {
          return fmt::format("{}+{:#x}", range.name, address - range.begin);
        }
      }
    }
  }
  const Allocation* nearest = nullptr;
  std::uintptr_t nearest_distance = UINTPTR_MAX;
  for (const auto& [begin, allocation] : allocations_) {
    const std::uintptr_t end = begin + allocation.bytes;
    if (address >= begin && address < end) {
      return fmt::format("{}+{:#x}", label(allocation), address - begin);
    }
    const std::uintptr_t distance = address < begin ? begin - address : address - end;
    if (distance < nearest_distance) {
      nearest = &allocation;
      nearest_distance = distance;
    }
  }
  if (nearest == nullptr) return fmt::format("{:#x}, and nothing is allocated", address);
  return fmt::format("{:#x}, {} bytes {} {} ({} bytes)", address, nearest_distance,
                     address < nearest->begin ? "before" : "after the end of", label(*nearest),
                     nearest->bytes);
}

}  // namespace afdep::emulator
