// Bulk copies: what arrives, what waits, and every way of using them wrongly.
#include <cstdint>
#include <string>

#include "tests/unit/emulator/bench.h"

namespace afdep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Pair {
  const std::uint32_t* from;
  std::uint32_t* to;
};

// One block, of 32 threads where nothing else is said, with two stages of 256 bytes; `body` works
// on a.from and a.to.
std::string ring(const std::string& body) {
  return R"(
#include "afdep/bulk.cuh"
using namespace afdep;
struct Args { const uint32_t* from; uint32_t* to; };
struct Shared {
  alignas(128) uint8_t stage[2][256];
  BulkBarrier loaded[3];
};
extern "C" __global__ void __launch_bounds__(64, 1) ring([[maybe_unused]] const __grid_constant__ Args a) {
  Shared& s = shared_memory<Shared>();
  const int lane = lane_index();
)" + body +
         "\n}\n";
}

constexpr const char* kInit = R"(
  if (thread_index() == 0) {
    init_barrier(s.loaded[0]);
    init_barrier(s.loaded[1]);
    init_barrier(s.loaded[2]);
    publish_barriers();
  }
  sync_block();
)";

class EmulatorBulk : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static constexpr int kWords = 64 * 8;

  EmulatorBulk() : bench_(GetParam()) {}

  void prepare(const std::string& body, int threads = 32) {
    kernel_ = bench_.kernel("ring", ring(body));
    from_ = bench_.memory<std::uint32_t>(kWords);
    to_ = bench_.memory<std::uint32_t>(kWords);
    for (std::uint32_t i = 0; i < kWords; ++i) from_[i] = 1000 + i;
    bench_.launch(kernel_, Pair{from_, to_}, {.threads = threads, .shared_bytes = 1024});
  }
  std::string report(const std::string& body) {
    prepare(body);
    return bench_.report();
  }
  void run(const std::string& body, int threads = 32) {
    prepare(body, threads);
    bench_.run();
  }

  Bench bench_;
  const LoadedKernel* kernel_ = nullptr;
  std::uint32_t* from_ = nullptr;
  std::uint32_t* to_ = nullptr;
};

// Eight rows through a ring of two stages.
TEST_P(EmulatorBulk, RingMovesEveryRow) {
  run(std::string(kInit) + R"(
  if (lane == 0) {
    for (int i = 0; i < 2; ++i) bulk_load(s.stage[i], a.from + i * 64, 256, s.loaded[i]);
    for (int i = 0; i < 8; ++i) {
      await_barrier(s.loaded[i % 2], static_cast<uint32_t>(i / 2) & 1u);
      bulk_store(a.to + i * 64, s.stage[i % 2], 256);
      bulk_commit();
      if (i >= 1 && i + 1 < 8) {
        bulk_await_read<1>();
        bulk_load(s.stage[(i + 1) % 2], a.from + (i + 1) * 64, 256, s.loaded[(i + 1) % 2]);
      }
    }
    bulk_await<0>();
  })");
  for (std::uint32_t i = 0; i < kWords; ++i) ASSERT_EQ(to_[i], 1000 + i);
}

// What a rank has under way when it dies does not arrive, nor is it touched again.
TEST_P(EmulatorBulk, CopiesOfARankThatDiesAreDropped) {
  const std::string body = std::string(kInit) + R"(
  if (lane == 0) {
    for (int i = 0; i < 2; ++i) bulk_load(s.stage[i], a.from + i * 64, 256, s.loaded[i]);
    for (int i = 0; i < 8; ++i) store_word(a.to + i, 7);
    await_barrier(s.loaded[0], 0);
    await_barrier(s.loaded[1], 0);
  })";
  bench_->inject({.kind = emulator::Injection::Kind::kDies, .rank = 0, .after = 4});
  run(body);
  EXPECT_TRUE(bench_->injected());
  EXPECT_EQ(to_[7], 0U);
  run(body);
  EXPECT_EQ(to_[7], 7U);
}

// Lanes change a staged row; the copy back needs their stores before it, and a proxy fence.
TEST_P(EmulatorBulk, OrdinaryStoresReachACopyThroughAFence) {
  run(std::string(kInit) + R"(
  if (lane == 0) bulk_load(s.stage[0], a.from, 256, s.loaded[0]);
  await_barrier(s.loaded[0], 0);
  uint32_t* const words = reinterpret_cast<uint32_t*>(s.stage[0]);
  words[lane] += 1;
  words[lane + 32] += 1;
  sync_warp();
  if (lane == 0) {
    fence_bulk_shared();
    bulk_store(a.to, s.stage[0], 256);
    bulk_commit();
    bulk_await<0>();
  })");
  for (std::uint32_t i = 0; i < 64; ++i) ASSERT_EQ(to_[i], 1001 + i);
}

TEST_P(EmulatorBulk, SizeAndAlignmentAreChecked) {
  EXPECT_THAT(
      report(std::string(kInit) + "if (lane == 0) bulk_load(s.stage[0], a.from, 24, s.loaded[0]);"),
      AllOf(HasSubstr("bulk_load: copies 24 bytes, which is no multiple of 16"),
            HasSubstr("; at ring.cu:")));
  EXPECT_THAT(report(std::string(kInit) +
                     "if (lane == 0) bulk_load(s.stage[0] + 8, a.from, 16, s.loaded[0]);"),
              HasSubstr("the address in shared memory is not 16-byte aligned"));
  EXPECT_THAT(report(std::string(kInit) + "if (lane == 0) bulk_store(a.to + 1, s.stage[0], 16);"),
              HasSubstr("bulk_store: the address in global memory is not 16-byte aligned"));
  EXPECT_THAT(report(std::string(kInit) +
                     "if (lane == 0) bulk_load(s.stage[0], a.from, 2048, s.loaded[0]);"),
              HasSubstr("2048 bytes are not all in the block's 1024 bytes of shared memory"));
  EXPECT_THAT(report(std::string(kInit) +
                     "if (lane == 0) bulk_load(s.stage[0], a.from + 504, 256, s.loaded[0]);"),
              HasSubstr("load of 256 bytes at "));
}

TEST_P(EmulatorBulk, BarriersAreInitialisedAndPublishedOnce) {
  EXPECT_THAT(report("if (lane == 0) bulk_load(s.stage[0], a.from, 256, s.loaded[0]);"),
              HasSubstr("bulk_load: the barrier is not initialised"));
  EXPECT_THAT(report(R"(if (lane == 0) {
      init_barrier(s.loaded[0]);
      bulk_load(s.stage[0], a.from, 256, s.loaded[0]);
    })"),
              HasSubstr("publish_barriers was not called after that by the same thread"));
  EXPECT_THAT(report(std::string(kInit) + "if (lane == 0) init_barrier(s.loaded[1]);"),
              HasSubstr("init_barrier: the barrier is initialised already"));
}

TEST_P(EmulatorBulk, APhaseHasOneLoad) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  if (lane == 0) {
    for (int i = 0; i < 400; ++i) bulk_load(s.stage[i % 2], a.from, 256, s.loaded[0]);
  })"),
              ::testing::AnyOf(HasSubstr("phase 0 already has its one load"),
                               HasSubstr("phase 1 already has its one load"),
                               HasSubstr("data race at shared memory+0x0")));
}

TEST_P(EmulatorBulk, NothingMayBeLeftBehind) {
  EXPECT_THAT(report(std::string(kInit) + "if (lane == 0) bulk_store(a.to, s.stage[0], 256);"),
              HasSubstr("the thread ends with stores that it did not commit (bulk_commit)"));
  EXPECT_THAT(report(std::string(kInit) +
                     "if (lane == 0) { bulk_store(a.to, s.stage[0], 256); bulk_commit(); }"),
              HasSubstr("the thread ends while its stores may still read shared memory"));
  EXPECT_THAT(report(std::string(kInit) +
                     "if (lane == 0) bulk_load(s.stage[0], a.from, 256, s.loaded[0]);"),
              HasSubstr("a load into its shared memory that nobody waited for (await_barrier)"));
}

TEST_P(EmulatorBulk, AWaitForAPhaseThatNeverComesIsADeadlock) {
  EXPECT_THAT(report(std::string(kInit) + "if (lane == 3) await_barrier(s.loaded[1], 0);"),
              AllOf(HasSubstr("deadlock"),
                    HasSubstr("waits in await_barrier for the end of a phase of parity 0")));
}

TEST_P(EmulatorBulk, AnArrivalEndsAPhaseAtOnce) {
  // Two phases by hand, each found ended by another lane; what lane 1 wrote is there.
  run(std::string(kInit) + R"(
  if (lane == 1) {
    s.stage[0][0] = 5;
    arrive_barrier(s.loaded[0]);
    await_barrier(s.loaded[1], 0);
    s.stage[0][0] = 6;
    arrive_barrier(s.loaded[0]);
  }
  if (lane == 0) {
    while (!barrier_passed(s.loaded[0], 0)) {}
    const uint32_t first = s.stage[0][0];
    arrive_barrier(s.loaded[1]);
    while (!barrier_passed(s.loaded[0], 1)) {}
    store_word(a.to, first * 256 + s.stage[0][0]);
  })");
  EXPECT_EQ(to_[0], 5U * 256 + 6);
}

// A look that finds nothing must come back: here lane 1 arrives at the second barrier only when
// lane 0, which looks at both in turn, has answered for the first.
TEST_P(EmulatorBulk, ALookAtABarrierWaitsForNone) {
  run(std::string(kInit) + R"(
  if (lane == 1) {
    arrive_barrier(s.loaded[0]);
    await_barrier(s.loaded[2], 0);
    arrive_barrier(s.loaded[1]);
  }
  if (lane == 0) {
    uint32_t found = 0;
    uint32_t answered = 0;
    while (found != 3) {
      for (uint32_t i = 0; i < 2; ++i) {
        if ((found >> i & 1) == 0 && barrier_passed(s.loaded[i], 0)) found |= 1u << i;
      }
      if (found == 1 && answered == 0) {
        answered = 1;
        arrive_barrier(s.loaded[2]);
      }
    }
    store_word(a.to, found + 10 * answered);
  })");
  EXPECT_EQ(to_[0], 13U);
}

// The lanes of a warp look each at a barrier of its own before they meet: whoever finds nothing may
// not keep the others from what they found.
TEST_P(EmulatorBulk, ALookHoldsUpNoLaneBesideIt) {
  run(std::string(kInit) + R"(
  if (warp_index() == 1) {
    if (lane == 0) arrive_barrier(s.loaded[0]);
    if (lane == 1) {
      await_barrier(s.loaded[2], 0);
      arrive_barrier(s.loaded[1]);
    }
  } else {
    bool open = lane < 2;
    while (ballot(open) != 0) {
      const bool passed = open && barrier_passed(s.loaded[lane], 0);
      if (passed && lane == 0) arrive_barrier(s.loaded[2]);
      if (passed) open = false;
    }
    if (lane == 0) store_word(a.to, 7);
  })",
      64);
  EXPECT_EQ(to_[0], 7U);
}

TEST_P(EmulatorBulk, ArrivalsThatNobodyAwaitsAreLeftBehindInPeace) {
  run(std::string(kInit) + "if (lane == 0) { arrive_barrier(s.loaded[0]); store_word(a.to, 3); }");
  EXPECT_EQ(to_[0], 3U);
}

// Or the load has ended: then the arrival ends a second phase, and the first is over.
TEST_P(EmulatorBulk, AnArrivalBesideALoadIsRefused) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  if (lane == 0) {
    bulk_load(s.stage[0], a.from, 256, s.loaded[0]);
    arrive_barrier(s.loaded[0]);
    await_barrier(s.loaded[0], 0);
  })"),
              ::testing::AnyOf(HasSubstr("arrive_barrier: the barrier's phase 0 has its one "
                                         "arrival already: a load"),
                               HasSubstr("deadlock")));
}

// ---- what the memory model says -----------------------------------------------------------------

class EmulatorBulkOrder : public EmulatorBulk {};

TEST_P(EmulatorBulkOrder, ReadBeforeTheWaitIsARace) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  if (lane == 0) {
    bulk_load(s.stage[0], a.from, 256, s.loaded[0]);
    store_word(a.to, *reinterpret_cast<uint32_t*>(s.stage[0]));
    await_barrier(s.loaded[0], 0);
  })"),
              AllOf(HasSubstr("data race at shared memory+0x0"),
                    HasSubstr("missing: no await_barrier for the end of that phase")));
}

TEST_P(EmulatorBulkOrder, StageReusedBeforeItIsRead) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  if (lane == 0) {
    fence_bulk_shared();
    bulk_store(a.to, s.stage[0], 256);
    bulk_commit();
    s.stage[0][5] = 1;
    bulk_await<0>();
  })"),
              AllOf(HasSubstr("data race at shared memory+0x5"),
                    HasSubstr("missing: no bulk_await_read or bulk_await for that group")));
}

TEST_P(EmulatorBulkOrder, ResultReadBeforeItIsComplete) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  if (lane == 0) {
    bulk_store(a.to, s.stage[0], 256);
    bulk_commit();
    bulk_await_read<0>();
    store_word(a.to + 64, load_word(a.to + 4));
  })"),
              HasSubstr("missing: no bulk_await for that group lies in between"));
}

TEST_P(EmulatorBulkOrder, CopyOfOrdinaryStoresNeedsAProxyFence) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  s.stage[0][lane * 4] = 7;
  sync_warp();
  if (lane == 0) {
    bulk_store(a.to, s.stage[0], 256);
    bulk_commit();
    bulk_await<0>();
  })"),
              AllOf(HasSubstr("missing proxy fence at shared memory+0x0"),
                    HasSubstr("no fence_bulk_shared lies between")));
}

TEST_P(EmulatorBulkOrder, FenceBeforeTheStoresAreJoinedCoversOnlyItsOwn) {
  EXPECT_THAT(report(std::string(kInit) + R"(
  s.stage[0][lane * 4] = 7;
  if (lane == 0) fence_bulk_shared();
  sync_warp();
  if (lane == 0) {
    bulk_store(a.to, s.stage[0], 256);
    bulk_commit();
    bulk_await<0>();
  })"),
              HasSubstr("missing proxy fence at shared memory+"));
}

TEST_P(EmulatorBulkOrder, BarrierUsedByAnotherThreadWithoutASync) {
  EXPECT_THAT(report(R"(
  if (lane == 0) {
    init_barrier(s.loaded[0]);
    publish_barriers();
    store_relaxed(a.to, 1);
  }
  if (lane == 1) {
    while (load_relaxed(a.to) == 0) poll_missed(a.to, {1, 0, 0}, 0, 1);
    bulk_load(s.stage[0], a.from, 256, s.loaded[0]);
    await_barrier(s.loaded[0], 0);
  })"),
              HasSubstr("bulk barrier used before its initialisation is known"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, EmulatorBulk, ::testing::Range<std::uint64_t>(1, 21));
INSTANTIATE_TEST_SUITE_P(Seeds, EmulatorBulkOrder, ::testing::Range<std::uint64_t>(1, 21));

}  // namespace
}  // namespace afdep
