// BF16 conversions of the device headers against double arithmetic.
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

struct Args {
  const std::uint32_t* in;
  std::uint32_t* out;
  std::uint32_t count;
};

std::vector<std::uint32_t> run(const std::string& symbol, const std::string& expression,
                               const std::vector<std::uint32_t>& in) {
  Bench bench;
  const LoadedKernel* kernel = bench.kernel(symbol, R"(
struct Args { const uint32_t* in; uint32_t* out; uint32_t count; };
extern "C" __global__ void __launch_bounds__(256, 1) )" +
                                                        symbol +
                                                        R"((const __grid_constant__ Args args) {
  for (uint32_t i = static_cast<uint32_t>(afdep::thread_index()); i < args.count; i += 256) {
    const uint32_t bits = afdep::load_input_word(args.in + i);
    afdep::store_word(args.out + i, )" + expression + R"();
  }
}
)");
  auto* const words = bench.memory<std::uint32_t>(in.size());
  auto* const out = bench.memory<std::uint32_t>(in.size());
  std::copy(in.begin(), in.end(), words);
  bench.launch(kernel, Args{words, out, static_cast<std::uint32_t>(in.size())}, {.threads = 256});
  bench.run();
  return {out, out + in.size()};
}

// The value of a finite BF16 number, from its fields.
double value_of(std::uint32_t half) {
  const int exponent = static_cast<int>(half >> 7 & 0xffu);
  const double fraction = static_cast<double>(half & 0x7fu) / 128.0;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -126) : std::ldexp(1.0 + fraction, exponent - 127);
  return (half >> 15) != 0 ? -magnitude : magnitude;
}

// The nearest BF16 number by comparing distances to both neighbours; even on a tie.
std::uint32_t nearest(float value) {
  if (std::isnan(value)) return 0x7fff;
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (std::isinf(value)) return sign | 0x7f80u;
  // The largest BF16 number that is not above it: magnitudes are ordered as their bits.
  std::uint32_t low = 0;
  std::uint32_t high = 0x7f80;
  while (high - low > 1) {
    const std::uint32_t middle = (low + high) / 2;
    (value_of(middle) <= magnitude ? low : high) = middle;
  }
  // Beyond the largest finite number the next step up counts as 2^128.
  const double above = high == 0x7f80 ? std::ldexp(1.0, 128) : value_of(high);
  const double to_low = magnitude - value_of(low);
  const double to_high = above - magnitude;
  if (to_low < to_high) return sign | low;
  if (to_high < to_low) return sign | high;
  return sign | (low % 2 == 0 ? low : high);
}

TEST(EmulatorBf16, EveryHalfWidensExactly) {
  std::vector<std::uint32_t> in;
  for (std::uint32_t half = 0; half < 65536; ++half) in.push_back(half | (65535 - half) << 16);
  const auto low = run("low", "afdep::bits_of(afdep::low_bf16(bits))", in);
  const auto high = run("high", "afdep::bits_of(afdep::high_bf16(bits))", in);
  for (std::uint32_t half = 0; half < 65536; ++half) {
    const bool finite = (half & 0x7f80u) != 0x7f80u;
    if (finite) {
      EXPECT_EQ(std::bit_cast<float>(low[half]), static_cast<float>(value_of(half)));
    }
    EXPECT_EQ(low[half], half << 16);
    EXPECT_EQ(high[half], (65535 - half) << 16);
  }
}

TEST(EmulatorBf16, RoundsToNearestEven) {
  std::vector<std::uint32_t> in;
  for (std::uint32_t half = 0; half < 65536; ++half) {
    // The number itself, just above it, around the tie, and just below the next.
    for (const std::uint32_t rest : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      in.push_back(half << 16 | rest);
    }
  }
  for (const float special :
       {0.0f, -0.0f, std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::signaling_NaN(), std::numeric_limits<float>::max(),
        std::numeric_limits<float>::lowest(), std::numeric_limits<float>::min(),
        std::numeric_limits<float>::denorm_min(), 1.0f, 1.00390625f, 1.01171875f, 3.3895314e38f,
        3.3961776e38f}) {
    in.push_back(std::bit_cast<std::uint32_t>(special));
  }
  const auto packed = run(
      "pack", "afdep::pack_bf16(afdep::float_of(bits), afdep::float_of(bits ^ 0x80000000u))", in);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const float value = std::bit_cast<float>(in[i]);
    EXPECT_EQ(packed[i] & 0xffffu, nearest(value)) << std::hex << in[i];
    EXPECT_EQ(packed[i] >> 16, nearest(-value)) << std::hex << in[i];
  }
}

TEST(EmulatorBf16, AddRoundsOnceAndHasOneNan) {
  const std::vector<std::uint32_t> in{
      std::bit_cast<std::uint32_t>(1.0f), std::bit_cast<std::uint32_t>(16777216.0f),
      std::bit_cast<std::uint32_t>(-std::numeric_limits<float>::infinity()), 0xffc00001u,
      0x00000001u};
  const auto sum = run(
      "sum",
      "afdep::bits_of(afdep::add(afdep::float_of(bits), afdep::add(afdep::float_of(bits), 1.0f)))",
      in);
  EXPECT_EQ(std::bit_cast<float>(sum[0]), 3.0f);
  EXPECT_EQ(std::bit_cast<float>(sum[1]), 33554432.0f);  // 2^24 + 1 rounds to 2^24
  EXPECT_EQ(sum[2], 0xff800000u);
  EXPECT_EQ(sum[3], 0x7fffffffu);
  EXPECT_EQ(std::bit_cast<float>(sum[4]), 1.0f);
}

}  // namespace
}  // namespace afdep
