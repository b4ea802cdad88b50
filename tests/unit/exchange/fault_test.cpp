// Fault records, what they do to a buffer, and abort.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/fault_report.h"
#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

using ::testing::HasSubstr;

// 4A4F with the FFN first: attention 1 is rank 5.
bundle::Manifest manifest_4a4f() {
  bundle::Manifest manifest;
  manifest.attention_ranks = 4;
  manifest.ffn_ranks = 4;
  manifest.experts = 128;
  return manifest;
}

WaitFault wait_fault(Phase phase) {
  return {.state = 2,
          .phase = phase,
          .peer = 2,
          .generation = 17,
          .seen = 15,
          .expected = 17,
          .item = 5,
          .reserved = 0};
}

TEST(FaultReport, NamesWhoWaitedForWhomAndWhat) {
  const bundle::Manifest manifest = manifest_4a4f();
  const auto text = [&](Phase phase, int rank) {
    return describe(wait_fault(phase), manifest, rank, 30000).message;
  };
  EXPECT_EQ(text(kPhaseReply, 5),
            "rank 5 (attention 1) waited 30000 ms in collect for worker 2's reply to token 5 of "
            "generation 17: saw 15");
  EXPECT_EQ(text(kPhaseRow, 3),
            "rank 3 (ffn 3) waited 30000 ms in receive for attention 2's row of token 5 of "
            "generation 17: saw 15");
  EXPECT_EQ(text(kPhaseTable, 3),
            "rank 3 (ffn 3) waited 30000 ms in receive for attention 2's top-k table at token 5 of "
            "generation 17: saw 15");
  WaitFault done = wait_fault(kPhaseDone);
  done.expected = 15;
  done.seen = 14;
  EXPECT_EQ(describe(done, manifest, 5, 30000).message,
            "rank 5 (attention 1) waited 30000 ms in dispatch for worker 2 to finish generation "
            "15: saw 14");
  EXPECT_EQ(describe(done, manifest, 5, 30000).note,
            "find out why rank 2 (ffn 2) is late or gone, then close the buffers of all ranks and "
            "create new ones");
  EXPECT_EQ(describe(done, manifest, 5, 30000).code, ErrorCode::kWaitTimedOut);
}

// Where all ranks meet they are numbered attention first: number 6 of 4A4F is worker 2, world
// rank 2.
TEST(FaultReport, NamesTheRankThatDoesNotComeToABarrier) {
  const bundle::Manifest manifest = manifest_4a4f();
  WaitFault fault = wait_fault(kPhaseEntry);
  fault.peer = 6;
  fault.item = 1;
  EXPECT_EQ(describe(fault, manifest, 5, 30000).message,
            "rank 5 (attention 1) waited 30000 ms at the entry barrier of dispatch for worker 2 to "
            "come in generation 17: saw 15");
  EXPECT_THAT(describe(fault, manifest, 5, 30000).note, HasSubstr("why rank 2 (ffn 2) is late"));
  fault.phase = kPhaseExit;
  fault.peer = 1;
  fault.item = 2;
  EXPECT_EQ(
      describe(fault, manifest, 3, 30000).message,
      "rank 3 (ffn 3) waited 30000 ms at the exit barrier of reply for attention 1 to come in "
      "generation 17: saw 15");
  fault.phase = kPhaseCounts;
  EXPECT_EQ(
      describe(fault, manifest, 5, 30000).message,
      "rank 5 (attention 1) waited 30000 ms in collect for attention 1's counts of generation "
      "17: saw 15");
  fault.phase = kPhaseGrid;
  fault.item = 3;
  EXPECT_EQ(describe(fault, manifest, 5, 30000).message,
            "rank 5 (attention 1) waited 30000 ms for block 3 of its own kernel in generation 17: "
            "saw 15");
  fault.phase = kPhaseEntry;
  fault.peer = 8;  // of eight ranks: none
  EXPECT_THAT(describe(fault, manifest, 5, 30000).message, HasSubstr("for rank number 8 to come"));
}

TEST(FaultReport, NamesTheTokenChoiceAndValueOfABadId) {
  RouteFault fault{.state = 2,
                   .error = kRouteOutOfRange,
                   .generation = 3,
                   .token = 5,
                   .value = -7,
                   .choice = 2,
                   .reserved = 0};
  EXPECT_EQ(
      describe(fault, manifest_4a4f(), 5).message,
      "rank 5 (attention 1): expert id -7 of token 5, choice 2, is neither -1 nor in [0, 128) "
      "(generation 3)");
  fault.error = kRouteDuplicate;
  fault.value = 9;
  EXPECT_EQ(describe(fault, manifest_4a4f(), 5).message,
            "rank 5 (attention 1): expert id 9 of token 5, choice 2, repeats an earlier choice of "
            "the token (generation 3)");
}

class FaultTest : public BufferTest {
 protected:
  // What the source's kernels see; reached as they reach it.
  CommonArgs common() { return backend_.launches.at(0).as<DispatchArgs>().common; }
  // As a kernel that gives up does.
  void expire() {
    WaitFault fault = wait_fault(kPhaseReply);
    fault.peer = 0;
    common().faults->wait = fault;
  }
};

TEST_F(FaultTest, AnExpiredWaitIsReportedOnceAndPoisonsTheBuffer) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  ASSERT_TRUE(collect(1).ok());
  EXPECT_TRUE(source().check().ok());
  expire();
  EXPECT_THAT(message_of(source().check()),
              HasSubstr("error[E701]: rank 1 (attention 0) waited 30000 ms in collect for worker "
                        "0's reply to token 5"));
  EXPECT_THAT(message_of(source().check()),
              HasSubstr("error[E702]: check: rank 1 gave up on a peer earlier"));
  EXPECT_THAT(message_of(dispatch(1, 2)),
              HasSubstr("error[E702]: source_dispatch: rank 1 gave up on a peer earlier"));
  EXPECT_TRUE(source().close().ok());
}

TEST_F(FaultTest, TheNextOperationFindsAnExpiredWait) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  expire();
  EXPECT_THAT(message_of(collect(1)), HasSubstr("error[E701]: rank 1 (attention 0) waited"));
  // The exchange cannot end any more, so closing is allowed.
  EXPECT_TRUE(source().close().ok());
}

TEST_F(FaultTest, CloseFindsAnExpiredWaitItself) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  expire();
  EXPECT_TRUE(source().close().ok());
}

TEST_F(FaultTest, ABadIdIsReportedOnceAndTheBufferGoesOn) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  ASSERT_TRUE(collect(1).ok());
  common().faults->route = {.state = 2,
                            .error = kRouteOutOfRange,
                            .generation = 1,
                            .token = 0,
                            .value = 8,
                            .choice = 1,
                            .reserved = 0};
  EXPECT_THAT(message_of(source().check()),
              HasSubstr("error[E703]: rank 1 (attention 0): expert id 8 of token 0, choice 1, is "
                        "neither -1 nor in [0, 8)"));
  EXPECT_TRUE(source().check().ok());
  EXPECT_EQ(common().faults->route.state, 0U);  // the next one can be recorded
  EXPECT_TRUE(dispatch(1, 2).ok());
}

TEST_F(FaultTest, ARecordThatIsStillBeingWrittenIsNotRead) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  common().faults->wait.state = 1;
  common().faults->route.state = 1;
  EXPECT_TRUE(source().check().ok());
}

TEST_F(FaultTest, AbortSetsTheDevicesWordAndStopsTheBuffer) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  ASSERT_TRUE(source().abort().ok());
  EXPECT_EQ(common().control->abort, 1U);
  EXPECT_THAT(message_of(collect(1)), HasSubstr("error[E702]: source_collect: rank 1 was aborted"));
  EXPECT_TRUE(source().close().ok());
}

TEST_F(FaultTest, TheTimeoutCanBeReplaced) {
  create(bundle::sample_manifest(), {.device_timeout = std::chrono::milliseconds(20)});
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_EQ(common().timeout_ns, 20'000'000U);
  expire();
  EXPECT_THAT(message_of(source().check()), HasSubstr("waited 20 ms"));
}

TEST_F(FaultTest, TheTimeoutHasLimits) {
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 3);
  EXPECT_THAT(
      message_of(
          Buffer::create(*ranks_[0], bundle, {.device_timeout = std::chrono::milliseconds(0)})),
      HasSubstr("error[E224]: Buffer::create: device_timeout = 0 ms is not in [1, 600000]"));
}

}  // namespace
}  // namespace afdep
