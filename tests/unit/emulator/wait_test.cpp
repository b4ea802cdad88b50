// Waits: deadlock reports, expiry in virtual time, the abort word.
#include <cstdint>
#include <cstring>

#include "templates/device/common/afdep/abi.h"
#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Args {
  CommonArgs common;
  std::uint32_t* flag;
  std::uint32_t* out;
};

// Lane 0 of each warp waits for the flag to hold 17, then says what it got.
constexpr const char* kWaits = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(64, 1) waits(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0) return;
  const bool came = afdep::await_flag(args.common, args.flag, 17, {afdep::kPhaseReply, 3, 5});
  afdep::store_word(args.out + afdep::warp_index(), came ? 1 : 2);
}
)";
constexpr const char* kSets = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) sets(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0) return;
  for (uint32_t value = 1; value <= 17; ++value) afdep::store_release(args.flag, value);
  afdep::store_word(args.out, 3);
}
)";

Args make_args(Bench& bench, std::uint64_t timeout_ns) {
  Args args{};
  args.common.control = bench.memory<Control>(1);
  args.common.faults = bench.memory<Faults>(1);
  args.common.timeout_ns = timeout_ns;
  args.flag = bench.memory<std::uint32_t>(1);
  args.out = bench.memory<std::uint32_t>(2);
  return args;
}

TEST(EmulatorWait, FlagOfAnotherRankIsSeen) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench bench(seed);
    const LoadedKernel* waits = bench.kernel("waits", kWaits);
    const LoadedKernel* sets = bench.kernel("sets", kSets);
    Args args = make_args(bench, 1000);
    const std::uint64_t before = bench->virtual_time();
    bench.launch(waits, args, {.threads = 64});
    Args theirs = args;
    theirs.out = bench.memory<std::uint32_t>(2);
    bench.launch(sets, theirs, {.rank = 1}, bench->create_stream().value());
    bench.run();
    EXPECT_EQ(args.out[0], 1u);
    EXPECT_EQ(args.out[1], 1u);
    EXPECT_EQ(theirs.out[0], 3u);
    EXPECT_EQ(bench->virtual_time(), before) << "nothing stalled, so no time passed";
    EXPECT_EQ(args.common.faults->wait.state, 0u);
  }
}

TEST(EmulatorWait, StallIsADeadlockThatNamesEveryWaiter) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* waits = bench.kernel("waits", kWaits);
    Args args = make_args(bench, 1000);
    *args.flag = 15;
    ASSERT_TRUE(bench->describe(args.flag, "flags", 6).ok());
    bench.launch(waits, args, {.grid = 2, .threads = 64, .rank = 6});
    const std::string report = bench.report();
    EXPECT_THAT(
        report,
        AllOf(HasSubstr("error[E704]: deadlock: no thread of any rank can run"),
              HasSubstr("\n  rank 6 waits (launch 1) block 0 threads 0, 32: waits in phase reply "
                        "for peer 3, item 5: saw 15, expected 17, first at flags of rank 6+0x0"),
              HasSubstr("\n  rank 6 waits (launch 1) block 1 threads 0, 32: "),
              HasSubstr("note: schedule of seed " + std::to_string(seed))));
    EXPECT_EQ(report, bench->last_report());
    // Cleared and usable.
    *args.flag = 17;
    bench.launch(waits, args, {.threads = 64, .rank = 6});
    bench.run();
    EXPECT_EQ(args.out[0], 1u);
  }
}

// A flag that was written again before its reader looked: the generation that it waits for never
// stands there again.
TEST(EmulatorWait, AFlagThatIsTwoGenerationsAheadIsNamed) {
  const std::string lapped =
      "error[E704]: deadlock: no thread of any rank can run\n"
      "  a newer generation stands where an older one is awaited: the place was written again "
      "before it was read (rule 3: reuse needs proof)\n"
      "  rank 6 waits (launch 1) block 0 threads 0, 32: waits in phase reply for peer 3, item 5: "
      "saw 19, expected 17, ";
  Bench bench;
  const LoadedKernel* waits = bench.kernel("waits", kWaits);
  Args args = make_args(bench, 1000);
  *args.flag = 19;
  bench.launch(waits, args, {.threads = 64, .rank = 6});
  EXPECT_THAT(bench.report(), StartsWith(lapped));
}

TEST(EmulatorWait, LongReportIsCut) {
  Bench bench;
  const LoadedKernel* waits = bench.kernel("waits", kWaits);
  bench.launch(waits, make_args(bench, 1000), {.grid = 45, .threads = 64});
  EXPECT_THAT(bench.report(), HasSubstr("\n  and 5 more"));
}

TEST(EmulatorWait, ExpiresInVirtualTimeAndRecordsTheFault) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench bench(seed, /*stop_on_stall=*/false);
    const LoadedKernel* waits = bench.kernel("waits", kWaits);
    Args args = make_args(bench, 30'000'000'000);  // half a minute
    *args.flag = 15;
    const std::uint64_t before = bench->virtual_time();
    bench.launch(waits, args, {.threads = 64});
    bench.run();
    EXPECT_EQ(args.out[0], 2u);
    EXPECT_EQ(args.out[1], 2u);
    EXPECT_EQ(args.common.control->abort, 1u);
    const WaitFault& fault = args.common.faults->wait;
    EXPECT_EQ(fault.state, 2u);
    EXPECT_EQ(fault.phase, static_cast<std::uint32_t>(kPhaseReply));
    EXPECT_EQ(fault.peer, 3u);
    EXPECT_EQ(fault.item, 5u);
    EXPECT_EQ(fault.generation, 17u);
    EXPECT_EQ(fault.seen, 15u);
    EXPECT_EQ(fault.expected, 17u);
    EXPECT_EQ(bench->virtual_time(), before + 30'000'000'000);
  }
}

// A wait that ended and the next one may be for the same thing of the same peer, in two words: the
// second has its whole time from its own start on, and no more.
TEST(EmulatorWait, TheNextWaitThatLooksAlikeIsAnother) {
  constexpr const char* kWaitsTwice = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
struct Shared { uint32_t came; };
extern "C" __global__ void __launch_bounds__(32, 1) twice(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0) return;
  Shared& shared = afdep::shared_memory<Shared>();
  shared.came = afdep::await_flag(args.common, args.flag, 17, {afdep::kPhaseReply, 3, 5}) ? 1 : 2;
  const bool both = afdep::await_flag(args.common, args.out + 1, 17, {afdep::kPhaseReply, 3, 5});
  afdep::store_word(args.out, shared.came + (both ? 0 : 2));
}
)";
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench bench(seed, /*stop_on_stall=*/false);
    const LoadedKernel* twice = bench.kernel("twice", kWaitsTwice);
    const LoadedKernel* sets = bench.kernel("sets", kSets);
    Args args = make_args(bench, 1000);
    const std::uint64_t before = bench->virtual_time();
    bench.launch(twice, args, {.shared_bytes = 16});
    Args theirs = args;
    theirs.out = bench.memory<std::uint32_t>(2);
    bench.launch(sets, theirs, {.rank = 1}, bench->create_stream().value());
    bench.run();
    EXPECT_EQ(args.out[0], 3u);
    EXPECT_EQ(bench->virtual_time(), before + 1000);
  }
}

// Only the nearest end of a wait passes: what it frees may still serve the others.
TEST(EmulatorWait, ShorterWaitExpiresAlone) {
  // Waits for a flag that never comes, then sets the one that the other rank waits for.
  constexpr const char* kGivesUp = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) gives_up(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0) return;
  if (!afdep::await_flag(args.common, args.out + 1, 1, {afdep::kPhaseRow, 0, 0})) {
    afdep::store_release(args.flag, 17);
  }
}
)";
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Bench bench(seed, /*stop_on_stall=*/false);
    const LoadedKernel* waits = bench.kernel("waits", kWaits);
    const LoadedKernel* gives_up = bench.kernel("gives_up", kGivesUp);
    Args longer = make_args(bench, 3001);
    Args shorter = make_args(bench, 3000);
    shorter.flag = longer.flag;
    bench.launch(waits, longer, {.threads = 64});
    bench.launch(gives_up, shorter, {.rank = 1}, bench->create_stream().value());
    bench.run();
    EXPECT_EQ(longer.out[0], 1u);
    EXPECT_EQ(longer.common.faults->wait.state, 0u);
    EXPECT_EQ(shorter.common.faults->wait.state, 2u);
  }
}

TEST(EmulatorWait, AbortWordEndsWaits) {
  constexpr const char* kAborts = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) aborts(const __grid_constant__ Args args) {
  if (afdep::lane_index() == 0) afdep::claim(&args.common.control->abort);
}
)";
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(seed);
    const LoadedKernel* waits = bench.kernel("waits", kWaits);
    const LoadedKernel* aborts = bench.kernel("aborts", kAborts);
    const Args args = make_args(bench, 1000);
    bench.launch(waits, args, {.threads = 64});
    bench.launch(aborts, args, {}, bench->create_stream().value());
    bench.run();
    EXPECT_EQ(args.out[0], 2u);
    EXPECT_EQ(args.common.faults->wait.state, 0u) << "an aborted wait is no fault";
  }
}

TEST(EmulatorWait, HostStoreWakesWaiters) {
  Bench bench;
  const LoadedKernel* waits = bench.kernel("waits", kWaits);
  const LoadedKernel* sets = bench.kernel("sets", kSets);
  const Args args = make_args(bench, 1000);
  const Args other = make_args(bench, 1000);
  bench.launch(waits, args, {.threads = 64});
  // Another stream drains while the waits sleep.
  const Stream stream = bench->create_stream().value();
  bench.launch(sets, other, {.rank = 1}, stream);
  ASSERT_TRUE(bench->synchronize(stream).ok());
  EXPECT_EQ(args.out[0], 0u);
  const std::uint32_t value = 17;
  ASSERT_TRUE(bench->copy_to_device(args.flag, &value, 4).ok());
  bench.run();
  EXPECT_EQ(args.out[0], 1u);
}

// A kernel whose arguments have no bound: time passes in growing steps until its own clock ends the
// wait.
TEST(EmulatorWait, UnknownBoundStillExpires) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) own_clock(const __grid_constant__ Args args) {
  if (afdep::lane_index() != 0) return;
  const uint64_t start = afdep::clock_ns();
  uint32_t seen = afdep::load_acquire(args.flag);
  while (seen != 1 && afdep::clock_ns() - start < 5000000) {
    afdep::poll_missed(args.flag, {1, 0, 0}, seen, 1);
    seen = afdep::load_acquire(args.flag);
  }
  afdep::store_word(args.out, 1);
}
)";
  struct Plain {
    std::uint32_t* flag;
    std::uint32_t* out;
  };
  Bench bench(1, /*stop_on_stall=*/false);
  const LoadedKernel* kernel = bench.kernel("own_clock", kBody);
  const Plain args{bench.memory<std::uint32_t>(1), bench.memory<std::uint32_t>(1)};
  bench.launch(kernel, args, {});
  bench.run();
  EXPECT_EQ(*args.out, 1u);
}

TEST(EmulatorWait, LoopThatNeverEndsIsALivelock) {
  constexpr const char* kBody = R"(
struct Args { uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(32, 1) spins(const __grid_constant__ Args args) {
  while (afdep::load_acquire(args.flag) == 0) {
  }
  afdep::store_word(args.out, 1);
}
)";
  struct Plain {
    std::uint32_t* flag;
    std::uint32_t* out;
  };
  Bench bench;
  const LoadedKernel* kernel = bench.kernel("spins", kBody);
  bench.launch(kernel, Plain{bench.memory<std::uint32_t>(1), bench.memory<std::uint32_t>(1)}, {});
  EXPECT_THAT(bench.report(), AllOf(HasSubstr("livelock: 1000000 accesses of all ranks in a row"),
                                    HasSubstr("load of 4 bytes at allocation 1+0x0")));
}

// A wait for several packets: one arrives while the others are read.
TEST(EmulatorWait, PacketsThatArriveDuringARoundAreNotMissed) {
  constexpr const char* kBody = R"(
struct Args { afdep::CommonArgs common; uint32_t* flag; uint32_t* out; };
extern "C" __global__ void __launch_bounds__(64, 1) packets(const __grid_constant__ Args args) {
  uint8_t* const inbox = reinterpret_cast<uint8_t*>(args.flag);
  if (afdep::thread_index() < 4) {
    const uint32_t i = static_cast<uint32_t>(afdep::thread_index());
    afdep::store_packet(inbox + i * 16, afdep::Packet{{i, i, i}, 9});
  }
  if (afdep::thread_index() == 32) {
    const uint8_t* const at[4] = {inbox, inbox + 16, inbox + 32, inbox + 48};
    const afdep::Awaited awaited[4] = {{3, 0, 0}, {3, 0, 1}, {3, 0, 2}, {3, 0, 3}};
    afdep::Packet got[4];
    afdep::await_packets(args.common, got, at, 0xfu, 9, awaited);
    uint32_t sum = 0;
    for (int i = 0; i < 4; ++i) sum += got[i].word[0] + got[i].generation;
    afdep::store_word(args.out, sum);
  }
}
)";
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Bench bench(seed);
    const LoadedKernel* kernel = bench.kernel("packets", kBody);
    Args args = make_args(bench, 1000);
    args.flag = bench.memory<std::uint32_t>(16);
    bench.launch(kernel, args, {.threads = 64});
    bench.run();
    EXPECT_EQ(args.out[0], 0u + 1 + 2 + 3 + 4 * 9);
  }
}

}  // namespace
}  // namespace afdep
