// What ranks stored into each other's memory: exact counts that do not depend on the schedule.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <utility>

namespace afdep::emulator {

struct Traffic {
  std::uint64_t messages = 0;  // stores of any kind
  std::uint64_t bytes = 0;     // of all stores
  std::uint64_t packets = 0;   // flag-in-data packets among them
  std::uint64_t flags = 0;     // release stores among them that are no done words
  std::uint64_t done = 0;      // done words among them

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// By (storing rank, owner of the memory). Only memory whose owner was given to the backend counts,
// and only other ranks' stores.
// A done word is a store into a range of restrict_foreign_stores() that holds done words.
using Ledger = std::map<std::pair<int, int>, Traffic>;

}  // namespace afdep::emulator
