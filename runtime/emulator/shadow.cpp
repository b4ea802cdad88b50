#include "runtime/emulator/shadow.h"

#include <algorithm>
#include <utility>

namespace afdep::emulator {

Unit::Unit(const Unit& other)
    : write(other.write),
      use(other.use),
      more(other.more == nullptr ? nullptr : std::make_unique<std::vector<Uses>>(*other.more)) {}

Shadow::Page* Shadow::find_page(std::uintptr_t number) {
  Cached& cached = cache_[number % kCached];
  if (cached.page != nullptr && cached.number == number) return cached.page;
  const auto found = pages_.find(number);
  if (found == pages_.end()) return nullptr;
  cached = {number, found->second.get()};
  return cached.page;
}

Cell& Shadow::cell(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t number = address >> kPageBits;
  Page* page = find_page(number);
  if (page == nullptr) {
    page = pages_.emplace(number, std::make_unique<Page>()).first->second.get();
  }
  return (*page)[address / kCellBytes % kPageCells];
}

Cell* Shadow::find(const void* at) {
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  Page* const page = find_page(address >> kPageBits);
  return page == nullptr ? nullptr : &(*page)[address / kCellBytes % kPageCells];
}

void Shadow::forget(const void* at, std::size_t bytes) {
  if (bytes == 0 || pages_.empty()) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = begin + bytes;
  const auto clear_in = [&](std::uintptr_t number, Page& page) {
    for (std::size_t i = 0; i < kPageCells; ++i) {
      const std::uintptr_t cell = (number << kPageBits) + i * kCellBytes;
      if (cell + kCellBytes > begin && cell < end) page[i] = Cell{};
    }
  };
  const std::uintptr_t first = begin >> kPageBits;
  const std::uintptr_t last = (end - 1) >> kPageBits;
  if (last - first > pages_.size()) {
    for (const auto& [number, page] : pages_) {
      if (number >= first && number <= last) clear_in(number, *page);
    }
    return;
  }
  for (std::uintptr_t number = first; number <= last; ++number) {
    Page* const page = find_page(number);
    if (page != nullptr) clear_in(number, *page);
  }
}

void Shadow::clear() {
  pages_.clear();
  cache_.fill({});
}

std::pair<Unit*, Unit*> Shadow::units(Cell& cell, const void* at, std::size_t bytes) {
  if (bytes == kCellBytes && cell.parts.empty()) return {&cell.whole, &cell.whole + 1};
  const std::size_t wanted = bytes < 4 ? kCellBytes : 4;
  if (cell.parts.size() < wanted) {
    std::vector<Unit> parts;
    parts.reserve(wanted);
    for (std::size_t i = 0; i < wanted; ++i) {
      parts.emplace_back(cell.parts.empty() ? cell.whole
                                            : cell.parts[i * cell.parts.size() / wanted]);
    }
    cell.parts = std::move(parts);
  }
  const std::size_t size = kCellBytes / cell.parts.size();
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(at) % kCellBytes;
  Unit* const first = cell.parts.data() + offset / size;
  return {first, first + std::max<std::size_t>(1, bytes / size)};
}

}  // namespace afdep::emulator
