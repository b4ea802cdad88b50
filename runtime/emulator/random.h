// The schedule's source of chance: the same numbers for a seed on every platform.
// Source: Blackman and Vigna, "Scrambled Linear Pseudorandom Number Generators" (xoshiro256**);
// SplitMix64 spreads the seed.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace afdep::emulator {

// One step of SplitMix64; also a good hash of a word.
constexpr std::uint64_t split_mix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) {
    for (std::uint64_t& word : state_) word = split_mix(seed);
  }

  constexpr std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // In [0, limit); limit > 0. The bias of less than limit / 2^32 is of no concern to a schedule.
  constexpr std::uint32_t below(std::uint32_t limit) {
    return static_cast<std::uint32_t>((next() >> 32) * limit >> 32);
  }

  // True once in `odds` times.
  constexpr bool one_in(std::uint32_t odds) { return below(odds) == 0; }

 private:
  std::array<std::uint64_t, 4> state_{};
};

}  // namespace afdep::emulator
