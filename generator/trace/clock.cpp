// One time axis from two clocks.
#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "generator/trace/stamps.h"

namespace afdep::trace {
namespace {

// Nanoseconds between two ticks of the shared clock, as far as readings tell: the smallest
// difference.
std::uint64_t tick_of(const std::vector<Stamp>& stamps) {
  std::vector<std::uint64_t> readings;
  readings.reserve(stamps.size());
  for (const Stamp& stamp : stamps) readings.push_back(stamp.clock_ns);
  std::ranges::sort(readings);
  std::uint64_t tick = 0;
  for (std::size_t i = 1; i < readings.size(); ++i) {
    const std::uint64_t apart = readings[i] - readings[i - 1];
    if (apart != 0 && (tick == 0 || apart < tick)) tick = apart;
  }
  return std::max<std::uint64_t>(tick, 1);
}

struct Sm {
  std::vector<const Stamp*> stamps;
  std::uint64_t first_cycle = std::numeric_limits<std::uint64_t>::max();
};

// Cycles a nanosecond: all SMs share one frequency, so the SM that was watched longest says it
// best.
double frequency_of(const std::map<std::uint32_t, Sm>& sms) {
  double longest_ns = 0;
  double frequency = 1;
  for (const auto& [number, sm] : sms) {
    const auto [first, last] =
        std::ranges::minmax_element(sm.stamps, {}, [](const Stamp* s) { return s->cycles; });
    const auto ns =
        static_cast<double>((*last)->clock_ns) - static_cast<double>((*first)->clock_ns);
    const auto cycles = static_cast<double>((*last)->cycles - (*first)->cycles);
    if (ns > longest_ns && cycles > 0) {
      longest_ns = ns;
      frequency = cycles / ns;
    }
  }
  return frequency;
}

}  // namespace

double place_in_time(std::vector<Stamp>& stamps) {
  if (stamps.empty()) return 0;
  const std::uint64_t origin = std::ranges::min_element(stamps, {}, &Stamp::clock_ns)->clock_ns;
  const auto tick = static_cast<double>(tick_of(stamps));
  std::map<std::uint32_t, Sm> sms;
  for (const Stamp& stamp : stamps) {
    Sm& sm = sms[stamp.sm];
    sm.stamps.push_back(&stamp);
    sm.first_cycle = std::min(sm.first_cycle, stamp.cycles);
  }
  const double frequency = frequency_of(sms);
  const auto own_ns = [&](const Stamp& stamp) {
    return static_cast<double>(stamp.cycles - sms.at(stamp.sm).first_cycle) / frequency;
  };
  std::map<std::uint32_t, double> offsets;
  for (const auto& [number, sm] : sms) {
    // A reading r of the shared clock was taken in [r, r + tick): each bounds the offset.
    double lowest = -std::numeric_limits<double>::infinity();
    double highest = std::numeric_limits<double>::infinity();
    for (const Stamp* const stamp : sm.stamps) {
      const double offset = static_cast<double>(stamp->clock_ns - origin) - own_ns(*stamp);
      lowest = std::max(lowest, offset);
      highest = std::min(highest, offset + tick);
    }
    offsets[number] = (lowest + highest) / 2 - tick / 2;
  }
  for (Stamp& stamp : stamps) stamp.at_ns = offsets.at(stamp.sm) + own_ns(stamp);
  return tick;
}

}  // namespace afdep::trace
