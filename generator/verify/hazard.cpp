#include "generator/verify/hazard.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "generator/verify/slot_memory.h"

namespace afdep::verify {
namespace {

constexpr const char* kStale =
    "is that of an earlier exchange: something of an old generation was taken for the awaited one "
    "(rule 1: every flag, packet and count carries the full generation)";
constexpr const char* kMisplaced =
    "belongs elsewhere in the same exchange (rule 2: a slot is a function of source and token, on "
    "both sides)";

bool equal(const Bf16* a, const Bf16* b, std::size_t hidden) {
  return std::memcmp(a, b, hidden * sizeof(Bf16)) == 0;
}

// True if `row` is one of the rows of [tokens][hidden].
bool among(const Bf16* row, const std::vector<Bf16>& rows, std::size_t hidden) {
  for (std::size_t at = 0; at + hidden <= rows.size(); at += hidden) {
    if (equal(row, &rows[at], hidden)) return true;
  }
  return false;
}

bool sent(const Bf16* row, const ExchangeCase& exchange, std::size_t hidden) {
  return std::ranges::any_of(exchange.inputs,
                             [&](const SourceInput& each) { return among(row, each.x, hidden); });
}

bool collected(const Bf16* row, const ExchangeCase& exchange, std::size_t hidden) {
  if (std::all_of(row, row + hidden, [](Bf16 value) { return value == 0; })) return false;
  return std::ranges::any_of(
      exchange.collected, [&](const std::vector<Bf16>& each) { return among(row, each, hidden); });
}

}  // namespace

Result<std::string> name_hazard(World& world, const Slot& slot, const ExchangeCase& exchange,
                                const std::vector<ExchangeCase>& earlier) {
  const auto hidden = static_cast<std::size_t>(world.shape().hidden);
  const auto rows_of = [&](const Guarded& memory) -> Result<std::vector<Bf16>> {
    const Result<std::vector<std::uint8_t>> bytes = read(world.backend(), memory);
    if (!bytes.ok()) return bytes.failure();
    std::vector<Bf16> rows(memory.bytes / sizeof(Bf16));
    if (!rows.empty()) std::memcpy(rows.data(), bytes->data() + kGuardBytes, memory.bytes);
    return rows;
  };
  for (std::size_t w = 0; w < slot.workers.size(); ++w) {
    const Result<std::vector<Bf16>> rows = rows_of(slot.workers[w].rows);
    if (!rows.ok()) return rows.failure();
    for (const ReceivedRow& row : exchange.received[w].rows) {
      const Bf16* const seen = &(*rows)[static_cast<std::size_t>(row.row) * hidden];
      const Bf16* const right = &exchange.inputs[static_cast<std::size_t>(row.source)]
                                     .x[static_cast<std::size_t>(row.token) * hidden];
      if (equal(seen, right, hidden)) continue;
      const std::string where = fmt::format("FFN {}: row {}", w, row.row);
      for (const ExchangeCase& each : earlier) {
        if (sent(seen, each, hidden)) return fmt::format("{} {}", where, kStale);
      }
      if (sent(seen, exchange, hidden)) return fmt::format("{} {}", where, kMisplaced);
    }
  }
  for (std::size_t s = 0; s < slot.sources.size() && !slot.view; ++s) {
    const Result<std::vector<Bf16>> rows = rows_of(slot.sources[s].out);
    if (!rows.ok()) return rows.failure();
    const std::vector<Bf16>& right = exchange.collected[s];
    for (std::size_t at = 0; at + hidden <= right.size(); at += hidden) {
      const Bf16* const seen = &(*rows)[at];
      if (equal(seen, &right[at], hidden)) continue;
      const std::string where = fmt::format("attention {}: output of token {}", s, at / hidden);
      for (const ExchangeCase& each : earlier) {
        if (collected(seen, each, hidden)) return fmt::format("{} {}", where, kStale);
      }
      if (collected(seen, exchange, hidden)) return fmt::format("{} {}", where, kMisplaced);
    }
  }
  return std::string();
}

}  // namespace afdep::verify
