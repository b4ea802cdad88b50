// The schedule: a seed decides it, and nothing else does.
#include <sys/resource.h>

#include <cstdint>
#include <set>
#include <vector>

#include "runtime/emulator/fiber.h"
#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

struct Order {
  std::uint32_t* next;
  std::uint32_t* order;
};

// Every thread writes its number at the place that a racy counter gives it, so that the result
// depends on the interleaving.
constexpr const char* kOrder = R"(
struct Args { uint32_t* next; uint32_t* order; };
extern "C" __global__ void __launch_bounds__(32, 1) order(const __grid_constant__ Args args) {
  const uint32_t mine = static_cast<uint32_t>(afdep::block_index() * 32 + afdep::thread_index());
  for (int i = 0; i < 4; ++i) {
    const uint32_t place = afdep::load_word(args.next);
    afdep::store_word(args.order + place % 1024, mine);
    afdep::store_word(args.next, place + 1);
  }
}
)";

// The kernel races on purpose.
Bench racy(std::uint64_t seed) { return Bench(seed, true, 1 << 20, emulator::Memory::kSequential); }

struct Outcome {
  std::uint64_t trace;
  std::uint64_t switches;
  std::vector<std::uint32_t> order;

  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend auto operator<=>(const Outcome&, const Outcome&) = default;
};

Outcome outcome(Bench& bench) {
  const LoadedKernel* kernel = bench.kernel("order", kOrder);
  auto* const next = bench.memory<std::uint32_t>(1);
  auto* const order = bench.memory<std::uint32_t>(1024);
  bench.launch(kernel, Order{next, order}, {.grid = 4});
  bench.launch(kernel, Order{next, order}, {.grid = 4, .rank = 1}, bench->create_stream().value());
  bench.run();
  const emulator::ScheduleCounts counts = bench->counts();
  return {counts.trace, counts.switches, {order, order + 1024}};
}

TEST(EmulatorSchedule, SameSeedSameTrace) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench first = racy(seed);
    Bench second = racy(seed);
    EXPECT_EQ(outcome(first), outcome(second)) << "seed " << seed;
  }
}

TEST(EmulatorSchedule, DifferentSeedsInterleaveDifferently) {
  std::set<Outcome> outcomes;
  std::set<std::vector<std::uint32_t>> results;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Bench bench = racy(seed);
    const Outcome one = outcome(bench);
    outcomes.insert(one);
    results.insert(one.order);
  }
  EXPECT_EQ(outcomes.size(), 40u);
  EXPECT_GT(results.size(), 30u);
}

TEST(EmulatorSchedule, SetSeedStartsTheScheduleAgain) {
  Bench bench = racy(3);
  outcome(bench);
  bench->set_seed(9);
  const Outcome again = outcome(bench);
  bench->set_seed(9);
  EXPECT_EQ(outcome(bench).switches, again.switches);
}

std::int64_t peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(EmulatorSchedule, ThousandBlocksUseBoundedMemory) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* next; uint32_t* order; };
extern "C" __global__ void __launch_bounds__(256, 1) many(const __grid_constant__ Args args) {
  const int thread = afdep::thread_index();
  uint32_t* const mine = args.order + afdep::block_index() * 256 + thread;
  afdep::store_word(mine, 1);
  afdep::sync_block();
  const uint32_t ones = static_cast<uint32_t>(
      afdep::count_bits(afdep::ballot(afdep::load_word(mine) == 1)));
  if (thread == 0) afdep::store_word(args.next + afdep::block_index(), ones);
}
)";
#if AFDEP_THREAD_SANITIZER
  // It keeps 8,128 threads, where 32 blocks are resident at a time; and of each far more than a
  // stack, for long.
  constexpr int kBlocks = 100;
  constexpr int kThreads = 128;
  constexpr std::int64_t kMostKilobytes = INT64_MAX;
#else
  constexpr int kBlocks = 1000;
  constexpr int kThreads = 256;
  constexpr std::int64_t kMostKilobytes = 256 * 1024;  // all stacks at once would touch 2 GB
#endif
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("many", kBody);
    auto* const next = bench.memory<std::uint32_t>(kBlocks);
    auto* const order = bench.memory<std::uint32_t>(kBlocks * 256);
    const std::int64_t before = peak_kilobytes();
    bench.launch(kernel, Order{next, order}, {.grid = kBlocks, .threads = kThreads});
    bench.run();
    for (int block = 0; block < kBlocks; ++block) EXPECT_EQ(next[block], 32u);
    EXPECT_LT(peak_kilobytes() - before, kMostKilobytes) << "seed " << seed;
  }
}

// Blocks that wait for each other: all become resident, unless the limit says otherwise.
constexpr const char* kRing = R"(
struct Args { uint32_t* next; uint32_t* order; };
extern "C" __global__ void __launch_bounds__(32, 1) ring(const __grid_constant__ Args args) {
  if (afdep::thread_index() != 0) return;
  const int block = afdep::block_index();
  afdep::store_release(args.next + block, 1);
  const uint32_t* const other = args.next + (block + 1) % 200;
  uint32_t seen = afdep::load_acquire(other);
  while (seen == 0) {
    afdep::poll_missed(other, {1, 0, 0}, seen, 1);
    seen = afdep::load_acquire(other);
  }
}
)";

TEST(EmulatorSchedule, AnyNumberOfBlocksMakesProgress) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("ring", kRing);
    bench.launch(kernel, Order{bench.memory<std::uint32_t>(200), nullptr}, {.grid = 200});
    bench.run();
  }
}

TEST(EmulatorSchedule, ResidencyLimitIsKept) {
  Bench bench(1, /*stop_on_stall=*/true, /*resident_blocks=*/1);
  const LoadedKernel* kernel = bench.kernel("ring", kRing);
  bench.launch(kernel, Order{bench.memory<std::uint32_t>(200), nullptr}, {.grid = 200});
  EXPECT_THAT(bench.report(), ::testing::ContainsRegex(
                                  "rank 0 ring .launch 1.: [0-9]+ of 200 blocks have no room"));
}

TEST(EmulatorSchedule, OptionsAreChecked) {
  EmulatorOptions options;
  options.schedule.resident_blocks = 0;
  const auto refused = EmulatorBackend::create(options);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.diagnostics()[0].message, "resident_blocks is 0, must be at least 1");
}

}  // namespace
}  // namespace afdep
