#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "generator/trace/stamps.h"

namespace afdep::trace {
namespace {

// A GPU whose events happen at known times: SM clocks of 1.98 GHz that start anywhere, and a shared
// clock that ticks every `tick` ns.
std::vector<Stamp> record(const std::vector<std::pair<std::uint32_t, double>>& events,
                          std::uint64_t tick) {
  constexpr double kCyclesANs = 1.98;
  std::vector<Stamp> stamps;
  for (const auto& [sm, at] : events) {
    const double absolute = 7'000'000'000.0 + at;
    Stamp stamp;
    stamp.sm = sm;
    stamp.clock_ns = static_cast<std::uint64_t>(absolute) / tick * tick;
    stamp.cycles = static_cast<std::uint64_t>(std::llround((at + 1000.0) * kCyclesANs)) +
                   (std::uint64_t{sm} << 40);
    stamps.push_back(stamp);
  }
  return stamps;
}

// Events of 20 SMs over 40 us, at irregular times.
std::vector<std::pair<std::uint32_t, double>> events() {
  std::vector<std::pair<std::uint32_t, double>> all;
  for (std::uint32_t sm = 0; sm < 20; ++sm) {
    for (int i = 0; i < 64; ++i) all.emplace_back(sm, i * 617.3 + sm * 13.7);
  }
  return all;
}

double largest_error(const std::vector<Stamp>& stamps,
                     const std::vector<std::pair<std::uint32_t, double>>& events) {
  // The origin is free: the first event's.
  const double origin = stamps.front().at_ns - events.front().second;
  double error = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    error = std::max(error, std::abs(stamps[i].at_ns - origin - events[i].second));
  }
  return error;
}

TEST(Clock, AFineSharedClockPlacesEventsWithinOneTick) {
  std::vector<Stamp> stamps = record(events(), 32);
  EXPECT_EQ(place_in_time(stamps), 32);
  EXPECT_LT(largest_error(stamps, events()), 32);
}

TEST(Clock, ACoarseSharedClockIsRefinedByTheSmClocks) {
  std::vector<Stamp> stamps = record(events(), 1000);
  EXPECT_EQ(place_in_time(stamps), 1000);
  EXPECT_LT(largest_error(stamps, events()), 700);
  // Within an SM only the frequency is uncertain: one tick over the 39 us that were watched.
  const double apart = stamps[10].at_ns - stamps[5].at_ns;
  EXPECT_NEAR(apart, 5 * 617.3, 5 * 617.3 * 1000 / 39'000 + 1);
}

TEST(Clock, OrderWithinAnSmIsKept) {
  std::vector<Stamp> stamps = record(events(), 1000);
  place_in_time(stamps);
  for (std::size_t i = 1; i < stamps.size(); ++i) {
    if (stamps[i].sm != stamps[i - 1].sm) continue;
    EXPECT_LT(stamps[i - 1].at_ns, stamps[i].at_ns);
  }
}

TEST(Clock, EqualClocksAreTheTime) {
  std::vector<Stamp> stamps(3);
  for (int i = 0; i < 3; ++i) {
    stamps[static_cast<std::size_t>(i)].clock_ns = 100 + 7 * static_cast<std::uint64_t>(i);
    stamps[static_cast<std::size_t>(i)].cycles = 100 + 7 * static_cast<std::uint64_t>(i);
  }
  place_in_time(stamps);
  EXPECT_DOUBLE_EQ(stamps[2].at_ns - stamps[0].at_ns, 14);
}

TEST(Clock, NothingIsPlacedWithoutStamps) {
  std::vector<Stamp> stamps;
  EXPECT_EQ(place_in_time(stamps), 0);
}

}  // namespace
}  // namespace afdep::trace
