// What an exchange must send, counted from its plan and the actual ids: exact, whatever the
// schedule.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "generator/plan/plan.h"
#include "generator/verify/exchange_case.h"

namespace afdep::verify {

// One direction between two ranks.
struct LinkTraffic {
  std::uint64_t messages = 0;  // stores of any kind
  std::uint64_t bytes = 0;     // of all of them
  std::uint64_t packets = 0;   // of 16 bytes, with their generation inside
  std::uint64_t flags = 0;     // release flags
  std::uint64_t done = 0;      // done words

  friend bool operator==(const LinkTraffic&, const LinkTraffic&) = default;
};

struct ExchangeTraffic {
  std::map<std::pair<int, int>, LinkTraffic> links;  // by world ranks (from, to); none is empty
  int hops = 0;  // messages on the longest chain in which each is sent after the one before is seen

  [[nodiscard]] LinkTraffic total() const;
};

// Of the plan's own exchange `exchange`, which runs alone. Precondition: the plan has its bucket.
ExchangeTraffic predict(const plan::ExchangePlan& plan, const ExchangeCase& exchange);

// Links that differ, one line each, as "rank 1 -> rank 0: 12 packets, predicted 13"; empty if none.
std::vector<std::string> differences(const ExchangeTraffic& seen, const ExchangeTraffic& predicted);

}  // namespace afdep::verify
