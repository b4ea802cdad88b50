// WeakMemory: packets, flags and relaxed words. Each location keeps the messages that some thread
// may still read; memory itself holds the newest.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/weak_memory.h"

namespace afdep::emulator {
namespace {

// Messages of one location that a load may choose from, at most.
constexpr std::size_t kHistory = 4;

Message as_in_memory(const Access& access) {
  Message message;
  std::memcpy(message.value.data(), access.address, access.bytes);
  return message;
}

std::size_t word_of(const Access& access) {
  return reinterpret_cast<std::uintptr_t>(access.address) % kCellBytes / 4;
}

bool holds(const Message& message, const Access& access) {
  return std::memcmp(message.value.data(), access.address, access.bytes) == 0;
}

std::uint32_t newest_of(const AtomicLocation& at) {
  return at.first + static_cast<std::uint32_t>(at.history.size()) - 1;
}

// True if an atomic access of `scope` by a thread of `rank` is one for `other`.
bool reaches(Scope scope, Agent agent, int rank, const ThreadId& other) {
  switch (scope) {
    case Scope::kSystem:
      return true;
    case Scope::kGpu:
      return rank == other.rank;
    case Scope::kBlock:
      return slot_of(agent) == slot_of(other.agent);
    case Scope::kThread:
      return agent == other.agent;
  }
  return false;
}

// True if two atomic accesses, each of its own scope, are so for each other: "morally strong" in
// PTX. The host's are (rank -1): whatever runs comes after them.
bool strong(Scope scope, const Stamp& stamp, int rank, const Access& access) {
  if (rank < 0 || (scope == Scope::kSystem && access.scope == Scope::kSystem)) return true;
  return reaches(scope, stamp.agent, rank, access.thread) &&
         (access.scope == Scope::kSystem ||
          reaches(access.scope, access.thread.agent, access.thread.rank,
                  {rank, 0, 0, 0, stamp.agent}));
}

const char* store_of(Scope scope) {
  return scope == Scope::kBlock ? "atomic store of block scope"
         : scope == Scope::kGpu ? "atomic store of GPU scope"
                                : "atomic store of system scope";
}
const char* load_of(Scope scope) {
  return scope == Scope::kBlock ? "atomic load of block scope"
         : scope == Scope::kGpu ? "atomic load of GPU scope"
                                : "atomic load of system scope";
}

}  // namespace

// An ordinary access of `self` to memory that others accessed atomically: all of that must be
// ordered before it.
void WeakMemory::check_atomics(const ThreadClock& self, Cell& cell, const Access& access,
                               const char* does, bool store) {
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(access.address) % kCellBytes;
  const auto check = [&](AtomicLocation& at) {
    if (!at.used) return;
    const Stamp& writer = at.history.back().writer;
    if (!ordered(self, writer.agent, writer.time)) {
      violate(Kind::kRace, access, "atomic store", writer, does);
      return;
    }
    if (!store) return;
    for (const Reader& reader : at.readers) {
      if (ordered(self, reader.stamp.agent, reader.stamp.time)) continue;
      violate(Kind::kRace, access, "atomic load", reader.stamp, does);
      return;
    }
    at = AtomicLocation{};
  };
  // Relaxed and acquiring loads of a word are no readers while it has one message.
  const auto check_reads = [&](const ScopedReads& reads) {
    for (const ScopedRead* const read : {&reads.narrow, &reads.newest, &reads.elsewhere}) {
      if (read->rank < 0 || ordered(self, read->stamp.agent, read->stamp.time)) continue;
      violate(Kind::kRace, access, "atomic load", read->stamp, does);
      return;
    }
  };
  check(cell.atomics->packet);
  for (std::size_t word = offset / 4; word < (offset + access.bytes + 3) / 4; ++word) {
    check(cell.atomics->word[word]);
    if (store && cell.atomics->reads != nullptr) check_reads((*cell.atomics->reads)[word]);
  }
}

// The location of an atomic access, after whatever was done to its bytes in other ways.
AtomicLocation& WeakMemory::location(const ThreadClock& self, const Access& access,
                                     const char* does) {
  Cell& cell = shadow_.cell(access.address);
  if (cell.atomics == nullptr) cell.atomics = std::make_unique<Atomics>();
  const bool is_packet = access.bytes == kCellBytes;
  AtomicLocation& at = is_packet ? cell.atomics->packet : cell.atomics->word[word_of(access)];
  // An atomic access of another size is as good as an ordinary one.
  const auto other = [&](AtomicLocation& one) {
    if (!one.used || violated()) return;
    const Stamp& writer = one.history.back().writer;
    if (!ordered(self, writer.agent, writer.time)) {
      violate(Kind::kSize, access, "atomic store of another size", writer, does);
    }
    for (const Reader& reader : one.readers) {
      if (ordered(self, reader.stamp.agent, reader.stamp.time)) continue;
      violate(Kind::kSize, access, "atomic load of another size", reader.stamp, does);
    }
    one = AtomicLocation{};
  };
  if (is_packet) {
    for (AtomicLocation& word : cell.atomics->word) other(word);
  } else {
    other(cell.atomics->packet);
  }
  if (!at.used || !holds(at.history.back(), access)) {
    // The first atomic access, or the host wrote: there is one value.
    at.used = true;
    at.first = at.history.empty() ? 1 : newest_of(at) + 1;
    at.history.clear();
    at.history.push_back(as_in_memory(access));
    at.readers.clear();
  }
  return at;
}

// The generation in the packet that a reader took; nothing if it is forgotten.
std::optional<std::uint32_t> WeakMemory::carried(const AtomicLocation& at, const Reader& reader) {
  if (reader.message < at.first || reader.message - at.first >= at.history.size()) return {};
  return at.history[reader.message - at.first].value[3];
}

// A reader whose packet was overwritten though nothing proves that it has read it. If it looks
// again, it was polling for the newer one; if it never does, the older one was what it needed.
void WeakMemory::doubt(Reader& reader, AtomicLocation& at, std::uint32_t by, const Access& where) {
  const BlockRecord& block = blocks_[slot_of(reader.stamp.agent)];
  if (gave_up_.contains(block.run->rank)) return;
  if (block.ended[part_of(reader.stamp.agent)]) {
    violate(Kind::kOverwrite, where, "load", reader.stamp, "store");
    violation_.carried = carried(at, reader);
    return;
  }
  if (reader.by == 0) {
    clock_of(reader.stamp.agent).doubts.push_back(reinterpret_cast<std::uintptr_t>(where.address));
  }
  reader.by = by;
}

// Called when a thread ends: its doubtful reads were no polls.
bool WeakMemory::report_doubts(const ThreadClock& self) {
  const int rank = blocks_[slot_of(self.agent)].run->rank;
  if (gave_up_.contains(rank)) return false;
  for (const std::uintptr_t address : self.doubts) {
    const auto* const at = reinterpret_cast<const void*>(address);
    const Cell* const cell = shadow_.find(at);
    if (cell == nullptr || cell->atomics == nullptr) continue;
    const AtomicLocation& packet = cell->atomics->packet;
    for (const Reader& reader : packet.readers) {
      if (reader.stamp.agent != self.agent || reader.by < packet.first) continue;
      const Message& by = packet.history[reader.by - packet.first];
      violation_ = {Kind::kOverwrite, "load",     "store", reader.stamp,
                    by.writer,        kCellBytes, at,      carried(packet, reader)};
      return true;
    }
  }
  return false;
}

Message& WeakMemory::read_atomic(ThreadClock& self, AtomicLocation& at, const Access& access,
                                 bool may_be_stale, bool counts_as_use) {
  const std::uint32_t newest = newest_of(at);
  // Coherence: nothing older than what this thread, or whoever is ordered before it, wrote or read.
  std::uint32_t oldest = newest;
  const auto mine = std::ranges::find(at.readers, self.agent,
                                      [](const Reader& reader) { return reader.stamp.agent; });
  if (at.history.size() > 1 && may_be_stale) {
    while (oldest > at.first) {
      const Stamp& writer = at.history[oldest - at.first].writer;
      if (ordered(self, writer.agent, writer.time)) break;
      --oldest;
    }
    for (const Reader& reader : at.readers) {
      if (reader.message > oldest && ordered(self, reader.stamp.agent, reader.stamp.time)) {
        oldest = reader.message;
      }
    }
  }
  std::uint32_t chosen = newest;
  if (oldest < newest) {
    // How many messages could be passed over; each only so many times, so that all come through.
    std::uint32_t last = newest;
    while (last > oldest && at.history[last - at.first].skips > 0) --last;
    if (last < newest && (choices_.scripted() || choices_.one_in(stale_odds_))) {
      chosen = newest - choices_.pick(newest - last + 1);
      for (std::uint32_t i = chosen + 1; i <= newest; ++i) --at.history[i - at.first].skips;
    }
    if (chosen < newest) self.stale = true;
  }
  self.seen_time = self.time;
  if (counts_as_use || at.history.size() > 1) {
    Reader* reader = nullptr;
    if (mine != at.readers.end()) {
      reader = &*mine;
      if (reader->by != 0) {
        std::erase(self.doubts, reinterpret_cast<std::uintptr_t>(access.address));
        reader->by = 0;
      }
    } else {
      // Readers of messages that nobody keeps constrain nobody.
      if (!counts_as_use) {
        std::erase_if(at.readers, [&](const Reader& one) { return one.message <= at.first; });
      }
      reader = &at.readers.emplace_back();
    }
    reader->stamp = {self.agent, self.time, access.site};
    reader->message = chosen;
    if (counts_as_use && chosen < newest) doubt(*reader, at, chosen + 1, access);
  }
  return at.history[chosen - at.first];
}

void WeakMemory::write_atomic(ThreadClock& self, AtomicLocation& at, const Access& access,
                              const void* value, bool releases, const Message* continues,
                              bool behind_fence) {
  Message message;
  std::memcpy(message.value.data(), value, access.bytes);
  message.rank = access.thread.rank;
  message.scope = access.scope;
  message.skips = choices_.scripted() ? 1 : skips_;
  message.releases = releases;
  // What came before a store is known to whoever reads it, though only a release orders memory.
  publish_seen(self, message);
  if (releases) {
    message.order = published(self);
    message.fenced = self.fenced;
  }
  if (behind_fence && self.fences) {
    message.releases = true;
    message.order = self.before_fence;
    message.fenced = self.before_fence_fenced;
  }
  if (continues != nullptr && continues->releases) {
    // A read-modify-write carries on the release that it read.
    message.releases = true;
    message.order = continues->order;
    message.fenced = continues->fenced;
  }
  message.writer = {self.agent, self.time, access.site};
  if (releases) ++self.time;
  const std::uint32_t number = newest_of(at) + 1;
  if (access.bytes == kCellBytes) {
    std::erase_if(at.readers, [&](const Reader& reader) {
      return reader.by == 0 && observed(self, reader.stamp.agent, reader.stamp.time);
    });
    for (Reader& reader : at.readers) {
      if (reader.by == 0) doubt(reader, at, number, access);
    }
  }
  if (at.history.size() == kHistory) {
    at.history.erase(at.history.begin());
    ++at.first;
  }
  at.history.push_back(std::move(message));
  std::memcpy(access.address, value, access.bytes);
}

// Stores whose scope, or this load's, does not reach the other's thread: nothing but causality may
// order them.
void WeakMemory::check_scope_of_load(const ThreadClock& self, const AtomicLocation& at,
                                     const Access& access) {
  for (const Message& message : at.history) {
    if (strong(message.scope, message.writer, message.rank, access)) continue;
    if (ordered(self, message.writer.agent, message.writer.time)) continue;
    violate(Kind::kScope, access, store_of(message.scope), message.writer, load_of(access.scope));
  }
}

void WeakMemory::check_scope_of_store(const ThreadClock& self, const AtomicLocation& at,
                                      const Atomics& atomics, const Access& access) {
  if (access.bytes == kCellBytes) return;  // packets are of system scope
  for (const Message& message : at.history) {
    if (strong(message.scope, message.writer, message.rank, access)) continue;
    if (ordered(self, message.writer.agent, message.writer.time)) continue;
    violate(Kind::kScope, access, store_of(message.scope), message.writer, store_of(access.scope));
  }
  if (atomics.reads == nullptr) return;
  const ScopedReads& reads = (*atomics.reads)[word_of(access)];
  for (const ScopedRead* const read : {&reads.narrow, &reads.newest, &reads.elsewhere}) {
    if (strong(read->scope, read->stamp, read->rank, access)) continue;
    if (ordered(self, read->stamp.agent, read->stamp.time)) continue;
    violate(Kind::kScope, access, load_of(read->scope), read->stamp, store_of(access.scope));
  }
}

void WeakMemory::note_scope_of_load(const ThreadClock& self, Atomics& atomics,
                                    const Access& access) {
  if (access.bytes == kCellBytes) return;
  if (atomics.reads == nullptr) atomics.reads = std::make_unique<std::array<ScopedReads, 4>>();
  ScopedReads& reads = (*atomics.reads)[word_of(access)];
  const ScopedRead read{{self.agent, self.time, access.site}, access.thread.rank, access.scope};
  if (reads.newest.rank != read.rank) reads.elsewhere = reads.newest;
  reads.newest = read;
  if (read.scope != Scope::kSystem) reads.narrow = read;
}

void WeakMemory::load_atomic(const Access& access, void* value, bool acquires, bool counts_as_use) {
  ThreadClock& self = clock_of(access.thread);
  Cell& cell = shadow_.cell(access.address);
  const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) {
    if (!check_write(self, *unit, access, "atomic load")) break;
  }
  AtomicLocation& at = location(self, access, "atomic load");
  check_scope_of_load(self, at, access);
  note_scope_of_load(self, *cell.atomics, access);
  Message& message = read_atomic(self, at, access, true, counts_as_use);
  std::memcpy(value, message.value.data(), access.bytes);
  if (message.writer.agent != self.agent) {
    self.seen = clocks_.join(self.seen, seen_by(message));
  }
  // A release of a scope that does not reach this thread, or none that this load's scope reaches,
  // orders nothing.
  if (acquires && message.releases && strong(message.scope, message.writer, message.rank, access)) {
    self.hb = clocks_.join(self.hb, message.order);
    self.fenced = clocks_.join(self.fenced, message.fenced);
  }
}

void WeakMemory::store_atomic(const Access& access, const void* value, bool releases,
                              bool behind_fence) {
  ThreadClock& self = clock_of(access.thread);
  Cell& cell = shadow_.cell(access.address);
  const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) {
    if (!check_write(self, *unit, access, "atomic store") ||
        !check_uses(self, *unit, access, "atomic store", false, false)) {
      break;
    }
  }
  AtomicLocation& at = location(self, access, "atomic store");
  check_scope_of_store(self, at, *cell.atomics, access);
  write_atomic(self, at, access, value, releases, nullptr, behind_fence);
}

void WeakMemory::load_packet(const Access& access, void* value) {
  load_atomic(access, value, false, true);
}
void WeakMemory::store_packet(const Access& access, const void* value) {
  store_atomic(access, value, false);
}
void WeakMemory::acquire(const Access& access, void* value) {
  load_atomic(access, value, true, false);
}
void WeakMemory::release(const Access& access, const void* value) {
  store_atomic(access, value, true);
}

void WeakMemory::store_flag(const Access& access, const void* value) {
  store_atomic(access, value, false, true);
}
void WeakMemory::flags_fenced(const ThreadId& thread) {
  ThreadClock& self = clock_of(thread);
  self.fences = true;
  self.before_fence = published(self);
  self.before_fence_fenced = self.fenced;
  ++self.time;
}

void WeakMemory::load_relaxed(const Access& access, void* value) {
  load_atomic(access, value, false, false);
}
void WeakMemory::store_relaxed(const Access& access, const void* value) {
  store_atomic(access, value, false);
}

bool WeakMemory::claim(const Access& access) {
  return read_modify_write(access,
                           [](std::uint32_t before) { return before == 0 ? 1U : before; }) == 0;
}

std::uint32_t WeakMemory::take(const Access& access) {
  return read_modify_write(access, [](std::uint32_t before) { return before + 1; });
}

// Returns what was there; where `changed` returns the same, nothing is written.
std::uint32_t WeakMemory::read_modify_write(const Access& access,
                                            std::uint32_t (*changed)(std::uint32_t)) {
  ThreadClock& self = clock_of(access.thread);
  Cell& cell = shadow_.cell(access.address);
  const auto [begin, end] = Shadow::units(cell, access.address, access.bytes);
  for (Unit* unit = begin; unit != end; ++unit) {
    if (!check_write(self, *unit, access, "atomic store") ||
        !check_uses(self, *unit, access, "atomic store", false, false)) {
      break;
    }
  }
  AtomicLocation& at = location(self, access, "atomic store");
  check_scope_of_load(self, at, access);
  note_scope_of_load(self, *cell.atomics, access);
  // A read-modify-write reads the newest message.
  Message& newest = read_atomic(self, at, access, false, false);
  self.seen = clocks_.join(self.seen, seen_by(newest));
  const Message read = newest;
  const std::uint32_t value = changed(read.value[0]);
  if (value == read.value[0]) return read.value[0];
  check_scope_of_store(self, at, *cell.atomics, access);
  write_atomic(self, at, access, &value, false, &read);
  return read.value[0];
}

}  // namespace afdep::emulator
