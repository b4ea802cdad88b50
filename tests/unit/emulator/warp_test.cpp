// Warp collectives and block barriers against scalar computations.
#include <array>
#include <bit>
#include <cstdint>

#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

struct Out {
  std::uint32_t* out;
};

// A number per lane that repeats now and then.
std::uint32_t value_of(std::uint32_t lane) { return (lane * 2654435761u >> 28) + 100; }

constexpr const char* kCollectives = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(64, 1) collectives(const __grid_constant__ Args args) {
  const uint32_t lane = static_cast<uint32_t>(afdep::lane_index());
  const uint32_t value = (lane * 2654435761u >> 28) + 100;
  uint32_t* const mine = args.out + afdep::thread_index() * 8;
  afdep::store_word(mine + 0, afdep::ballot(value % 3 == 0));
  afdep::store_word(mine + 1, afdep::match(value));
  afdep::store_word(mine + 2, afdep::reduce_or(1u << (value % 32)));
  afdep::store_word(mine + 3, afdep::shuffle(value, static_cast<int>((lane * 7 + 3) % 32)));
  afdep::store_word(mine + 4, afdep::shuffle_up(value, 5));
  afdep::sync_warp();
  afdep::store_word(mine + 5, static_cast<uint32_t>(afdep::count_bits(value)));
  afdep::store_word(mine + 6, static_cast<uint32_t>(afdep::lowest_bit(value)));
  afdep::store_word(mine + 7, static_cast<uint32_t>(afdep::warp_index()));
}
)";

TEST(EmulatorWarp, CollectivesEqualScalarComputation) {
  std::uint32_t ballot = 0;
  std::uint32_t all = 0;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if (value_of(lane) % 3 == 0) ballot |= 1u << lane;
    all |= 1u << (value_of(lane) % 32);
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("collectives", kCollectives);
    auto* const out = bench.memory<std::uint32_t>(64 * 8);
    bench.launch(kernel, Out{out}, {.threads = 64});
    bench.run();
    for (std::uint32_t thread = 0; thread < 64; ++thread) {
      const std::uint32_t lane = thread % 32;
      const std::uint32_t value = value_of(lane);
      std::uint32_t match = 0;
      for (std::uint32_t other = 0; other < 32; ++other) {
        if (value_of(other) == value) match |= 1u << other;
      }
      const std::uint32_t* const mine = out + thread * 8;
      EXPECT_EQ(mine[0], ballot);
      EXPECT_EQ(mine[1], match);
      EXPECT_EQ(mine[2], all);
      EXPECT_EQ(mine[3], value_of((lane * 7 + 3) % 32));
      EXPECT_EQ(mine[4], value_of(lane < 5 ? lane : lane - 5));
      EXPECT_EQ(mine[5], static_cast<std::uint32_t>(std::popcount(value)));
      EXPECT_EQ(mine[6], static_cast<std::uint32_t>(std::countr_zero(value)));
      EXPECT_EQ(mine[7], thread / 32);
    }
  }
}

// Each round every thread adds its number to a sum that all read after the barrier.
TEST(EmulatorWarp, BlockBarrierJoinsAllThreads) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
struct Shared { uint32_t sum[3]; };
extern "C" __global__ void __launch_bounds__(96, 1) barrier(const __grid_constant__ Args args) {
  Shared& shared = afdep::shared_memory<Shared>();
  const int thread = afdep::thread_index();
  if (thread < 3) shared.sum[thread] = 0;
  afdep::sync_block();
  for (int round = 0; round < 3; ++round) {
    afdep::add_shared(shared.sum[round], static_cast<uint32_t>(thread));
    afdep::sync_block();
    uint32_t* const mine = args.out + (afdep::block_index() * 96 + thread) * 3;
    afdep::store_word(mine + round, shared.sum[round]);
  }
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("barrier", kBody);
    auto* const out = bench.memory<std::uint32_t>(4 * 96 * 3);
    bench.launch(kernel, Out{out}, {.grid = 4, .threads = 96, .shared_bytes = 12});
    bench.run();
    for (int i = 0; i < 4 * 96 * 3; ++i) EXPECT_EQ(out[i], 95u * 96u / 2u);
  }
}

// Lanes take different paths with different numbers of accesses and meet again.
TEST(EmulatorWarp, LanesDivergeFreelyBetweenCollectives) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) diverge(const __grid_constant__ Args args) {
  const int lane = afdep::lane_index();
  uint32_t sum = 0;
  for (int i = 0; i < lane; ++i) {
    afdep::store_word(args.out + lane, sum);
    sum = afdep::load_word(args.out + lane) + 1;
  }
  const uint32_t below = lane % 2 == 0 ? sum * 2 : sum * 3;
  afdep::store_word(args.out + lane, afdep::shuffle(below, lane ^ 1));
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("diverge", kBody);
    auto* const out = bench.memory<std::uint32_t>(32);
    bench.launch(kernel, Out{out}, {});
    bench.run();
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      const std::uint32_t other = lane ^ 1u;
      EXPECT_EQ(out[lane], other % 2 == 0 ? other * 2 : other * 3);
    }
  }
}

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(EmulatorWarp, LaneThatEndsBeforeACollectiveIsReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) leaves(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 7) return;
  afdep::store_word(args.out, afdep::ballot(true));
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("leaves", kBody);
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {.rank = 3});
    EXPECT_THAT(bench.report(),
                AllOf(HasSubstr("error[E704]: rank 3 leaves (launch 1) block 0 thread "),
                      HasSubstr("warp 0 can never complete ballot: not all its lanes take part"),
                      HasSubstr("thread 7: has ended")));
  }
}

TEST(EmulatorWarp, LanesInDifferentCollectivesAreReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(64, 1) mixes(const __grid_constant__ Args args) {
  const int thread = afdep::thread_index();
  if (thread < 40) {
    afdep::sync_warp();
  } else {
    afdep::store_word(args.out, afdep::reduce_or(1));
  }
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("mixes", kBody);
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {.threads = 64});
    EXPECT_THAT(bench.report(), HasSubstr("warp 1 can never complete "));
  }
}

TEST(EmulatorWarp, ThreadThatSkipsABlockBarrierIsReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(64, 1) skips(const __grid_constant__ Args args) {
  if (afdep::warp_index() == 1) {
    if (afdep::lane_index() == 0) afdep::store_word(args.out, 1);
    return;
  }
  afdep::sync_block();
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("skips", kBody);
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {.threads = 64});
    EXPECT_THAT(bench.report(), HasSubstr("the block can never complete sync_block"));
    // The backend goes on.
    const LoadedKernel* good = bench.kernel("collectives", kCollectives);
    bench.launch(good, Out{bench.memory<std::uint32_t>(512)}, {.threads = 64});
    bench.run();
  }
}

TEST(EmulatorWarp, BarrierAgainstCollectiveInOneWarpIsReported) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) crosses(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 0) {
    afdep::sync_block();
  } else {
    afdep::store_word(args.out, afdep::ballot(true));
  }
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("crosses", kBody);
    bench.launch(kernel, Out{bench.memory<std::uint32_t>(1)}, {});
    EXPECT_THAT(bench.report(), HasSubstr("can never complete "));
  }
}

// A block whose last warp is ragged: the lanes that exist take part.
TEST(EmulatorWarp, RaggedWarpMeets) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* out; };
extern "C" __global__ void __launch_bounds__(40, 1) ragged(const __grid_constant__ Args args) {
  afdep::store_word(args.out + afdep::thread_index(), afdep::ballot(true));
}
)";
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("ragged", kBody);
  auto* const out = bench.memory<std::uint32_t>(40);
  bench.launch(kernel, Out{out}, {.threads = 40});
  bench.run();
  EXPECT_EQ(out[0], 0xffffffffu);
  EXPECT_EQ(out[39], 0xffu);
}

}  // namespace
}  // namespace afdep
