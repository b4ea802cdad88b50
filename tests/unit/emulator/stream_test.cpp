// The order of kernels, copies, events and graphs.
#include <chrono>
#include <cstdint>
#include <set>

#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Step {
  std::uint32_t* value;
  std::uint32_t* out;
  std::uint32_t factor;
};

// value = value * factor + 1 by one thread, in several accesses.
constexpr const char* kStep = R"(
struct Args { uint32_t* value; uint32_t* out; uint32_t factor; };
extern "C" __global__ void __launch_bounds__(32, 1) step(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0 || afdep::block_index() != 0) return;
  const uint32_t value = afdep::load_word(args.value);
  afdep::store_word(args.value, value * args.factor);
  afdep::store_word(args.value, afdep::load_word(args.value) + 1);
}
)";

// As above, but every thread may be resident early.
constexpr const char* kEarlyStep = R"(
struct Args { uint32_t* value; uint32_t* out; uint32_t factor; };
extern "C" __global__ void __launch_bounds__(32, 1) early_step(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 0) afdep::store_word(args.out, afdep::load_word(args.value));
  afdep::release_next_kernel();
  afdep::await_previous_kernel();
  if (afdep::lane_index() != 0 || afdep::block_index() != 0) return;
  const uint32_t value = afdep::load_word(args.value);
  afdep::store_word(args.value, value * args.factor);
  afdep::store_word(args.value, afdep::load_word(args.value) + 1);
}
)";

TEST(EmulatorStream, KernelsOfAStreamRunInOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* step = bench.kernel("step", kStep);
    Step args{bench.memory<std::uint32_t>(1), nullptr, 0};
    std::uint32_t expected = 0;
    for (std::uint32_t factor = 2; factor < 8; ++factor) {
      args.factor = factor;
      bench.launch(step, args, {.grid = 3});
      expected = expected * factor + 1;
    }
    bench.run();
    EXPECT_EQ(*args.value, expected);
  }
}

TEST(EmulatorStream, ProgrammaticKernelStartsEarlyAndWaits) {
  std::set<std::uint32_t> seen_early;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    // The kernel looks early on purpose.
    Bench bench(seed, true, 1 << 20, emulator::Memory::kSequential);
    const LoadedKernel* step = bench.kernel("early_step", kEarlyStep);
    auto* const value = bench.memory<std::uint32_t>(1);
    auto* const early = bench.memory<std::uint32_t>(2);
    bench.launch(step, Step{value, early, 1}, {});
    bench.launch(step, Step{value, early + 1, 5}, {.programmatic = true});
    bench.run();
    EXPECT_EQ(*value, 6u);
    EXPECT_EQ(early[0], 0u);
    seen_early.insert(early[1]);
  }
  EXPECT_TRUE(seen_early.contains(0)) << "no schedule made the second kernel resident early";
  EXPECT_TRUE(seen_early.contains(1))
      << "no schedule ended the first kernel before the second began";
}

TEST(EmulatorStream, OrdinaryKernelStartsWhenTheOneBeforeEnded) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Bench bench(seed);
    const LoadedKernel* step = bench.kernel("early_step", kEarlyStep);
    auto* const value = bench.memory<std::uint32_t>(1);
    auto* const early = bench.memory<std::uint32_t>(2);
    bench.launch(step, Step{value, early, 1}, {});
    bench.launch(step, Step{value, early + 1, 5}, {});
    bench.run();
    EXPECT_EQ(early[1], 1u);
  }
}

// One block of the first kernel neither releases nor ends, so the second may not start: the first
// waits for it in vain.
TEST(EmulatorStream, ProgrammaticKernelNeedsEveryBlockOfTheOneBefore) {
  constexpr const char* kHolds = R"(
struct Args { uint32_t* value; uint32_t* out; uint32_t factor; };
extern "C" __global__ void __launch_bounds__(32, 1) holds(const __grid_constant__ Args args) {
  if (afdep::block_index() != 1) {
    afdep::release_next_kernel();
    return;
  }
  if (afdep::lane_index() != 0) return;
  uint32_t seen = afdep::load_acquire(args.out);
  while (seen == 0) {
    afdep::poll_missed(args.out, {9, 8, 7}, seen, 1);
    seen = afdep::load_acquire(args.out);
  }
}
)";
  Bench bench;
  const LoadedKernel* holds = bench.kernel("holds", kHolds);
  const LoadedKernel* step = bench.kernel("early_step", kEarlyStep);
  auto* const value = bench.memory<std::uint32_t>(1);
  auto* const out = bench.memory<std::uint32_t>(1);
  bench.launch(holds, Step{value, out, 1}, {.grid = 3});
  bench.launch(step, Step{value, out, 1}, {.programmatic = true});
  EXPECT_THAT(bench.report(),
              AllOf(HasSubstr("rank 0 holds (launch 1) block 1 thread 0: waits in phase 9 for peer "
                              "8, item 7: saw 0, expected 1"),
                    Not(HasSubstr("early_step"))));
}

TEST(EmulatorStream, SynchronizeRunsAllStreamsUntilItsOwnIsEmpty) {
  Bench bench;
  const LoadedKernel* step = bench.kernel("step", kStep);
  auto* const values = bench.memory<std::uint32_t>(2);
  const Stream other = bench->create_stream().value();
  bench.launch(step, Step{values, nullptr, 1}, {});
  bench.launch(step, Step{values + 1, nullptr, 1}, {.rank = 1}, other);
  EXPECT_EQ(values[0], 0u) << "work runs when somebody synchronizes";
  ASSERT_TRUE(bench->synchronize(other).ok());
  EXPECT_EQ(values[1], 1u);
  ASSERT_TRUE(bench->synchronize(bench.stream()).ok());
  EXPECT_EQ(values[0], 1u);
  bench->destroy_stream(other);
  EXPECT_FALSE(bench->synchronize(other).ok());
}

TEST(EmulatorStream, EventsOrderStreams) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* step = bench.kernel("step", kStep);
    auto* const value = bench.memory<std::uint32_t>(1);
    const Stream other = bench->create_stream().value();
    const Event event = bench->create_event().value();
    ASSERT_TRUE(bench->wait(event, other).ok());  // never recorded: no wait
    for (int round = 0; round < 2; ++round) {
      bench.launch(step, Step{value, nullptr, 3}, {});
      ASSERT_TRUE(bench->record(event, bench.stream()).ok());
      ASSERT_TRUE(bench->wait(event, other).ok());
      bench.launch(step, Step{value, nullptr, 10}, {}, other);
      ASSERT_TRUE(bench->record(event, other).ok());
      ASSERT_TRUE(bench->wait(event, bench.stream()).ok());
    }
    bench.run();
    EXPECT_EQ(*value, ((0 * 3 + 1) * 10 + 1) * 3 * 10 + 10 + 1u);
    EXPECT_EQ(bench->elapsed(event, event).value(), std::chrono::nanoseconds(0));
    bench->destroy_event(event);
  }
}

TEST(EmulatorStream, ElapsedNeedsEventsThatHappened) {
  Bench bench;
  const Event event = bench->create_event().value();
  EXPECT_THAT(bench->elapsed(event, event).diagnostics()[0].message, HasSubstr("never recorded"));
  ASSERT_TRUE(bench->record(event, bench.stream()).ok());
  EXPECT_THAT(bench->elapsed(event, event).diagnostics()[0].message, HasSubstr("not happened yet"));
}

TEST(EmulatorStream, CopiesKeepTheirPlace) {
  Bench bench;
  const LoadedKernel* step = bench.kernel("step", kStep);
  auto* const values = bench.memory<std::uint32_t>(2);
  bench.launch(step, Step{values, nullptr, 1}, {});
  ASSERT_TRUE(bench->copy_on_stream(values + 1, values, 4, bench.stream()).ok());
  bench.launch(step, Step{values, nullptr, 1}, {.programmatic = true});
  bench.run();
  EXPECT_EQ(values[1], 1u);
  EXPECT_EQ(values[0], 2u);
}

TEST(EmulatorStream, GraphReplaysSeeMemoryChangedInPlace) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    // The kernel looks early on purpose.
    Bench bench(seed, true, 1 << 20, emulator::Memory::kSequential);
    const LoadedKernel* step = bench.kernel("early_step", kEarlyStep);
    auto* const value = bench.memory<std::uint32_t>(1);
    auto* const early = bench.memory<std::uint32_t>(2);
    auto* const copy = bench.memory<std::uint32_t>(1);
    ASSERT_TRUE(bench->begin_capture(bench.stream()).ok());
    EXPECT_TRUE(bench->is_capturing(bench.stream()));
    bench.launch(step, Step{value, early, 2}, {.programmatic = true});
    bench.launch(step, Step{value, early + 1, 3}, {.programmatic = true});
    ASSERT_TRUE(bench->copy_on_stream(copy, value, 4, bench.stream()).ok());
    const Graph graph = bench->end_capture(bench.stream()).value();
    EXPECT_FALSE(bench->is_capturing(bench.stream()));
    bench.run();
    EXPECT_EQ(*value, 0u) << "capturing runs nothing";
    for (std::uint32_t start = 0; start < 5; ++start) {
      *value = start;
      ASSERT_TRUE(bench->replay(graph, bench.stream()).ok());
      ASSERT_TRUE(bench->replay(graph, bench.stream()).ok());
      bench.run();
      const std::uint32_t once = (start * 2 + 1) * 3 + 1;
      EXPECT_EQ(*value, (once * 2 + 1) * 3 + 1);
      EXPECT_EQ(*copy, *value);
      EXPECT_EQ(early[0], once) << "a graph begins when all before it has ended";
    }
    bench->destroy_graph(graph);
    EXPECT_FALSE(bench->replay(graph, bench.stream()).ok());
  }
}

TEST(EmulatorStream, CallsOutOfOrderAreRefused) {
  Bench bench;
  EXPECT_EQ(bench->end_capture(bench.stream()).diagnostics()[0].code, ErrorCode::kCallOrder);
  ASSERT_TRUE(bench->begin_capture(bench.stream()).ok());
  EXPECT_EQ(bench->begin_capture(bench.stream()).diagnostics()[0].code, ErrorCode::kCallOrder);
  EXPECT_EQ(bench->synchronize(bench.stream()).diagnostics()[0].code, ErrorCode::kCallOrder);
}

TEST(EmulatorStream, LaunchesOfAWrongShapeAreRefused) {
  Bench bench;
  const LoadedKernel* step = bench.kernel("step", kStep);
  const Step args{};
  const auto message = [&](Launch launch) {
    const auto result = bench->launch(launch, bench.stream());
    return result.ok() ? std::string() : result.diagnostics()[0].message;
  };
  Launch launch{step, 1, 32, 0, &args, sizeof args, false, 2};
  EXPECT_EQ(message(launch), "");
  Launch wrong = launch;
  wrong.grid = 0;
  EXPECT_EQ(message(wrong), "launch of step on rank 2: grid is 0, must be at least 1");
  wrong = launch;
  wrong.threads = 1025;
  EXPECT_EQ(message(wrong), "launch of step on rank 2: threads is 1025, must be 1 to 1024");
  wrong = launch;
  wrong.args_bytes = 8;
  EXPECT_EQ(message(wrong),
            "launch of step on rank 2: args_bytes is 8, the kernel's argument struct has 24");
  wrong = launch;
  wrong.shared_bytes = 1 << 20;
  EXPECT_EQ(message(wrong),
            "launch of step on rank 2: shared_bytes is 1048576, must be at most 232448");
}

}  // namespace
}  // namespace afdep
