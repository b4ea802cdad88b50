// Roles, buckets, the order of calls, and receipts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(BufferTest, EachRoleHasItsOwnOperations) {
  create();
  EXPECT_THAT(message_of(worker().source_dispatch(payload(1), ids(1), weights(1),
                                                  {.bucket = 2, .stream = kStream})),
              HasSubstr("error[E502]: source_dispatch is an operation of attention ranks; rank 0 "
                        "is ffn 0"));
  EXPECT_THAT(message_of(source().worker_receive({.bucket = 2, .stream = kStream})),
              HasSubstr("error[E502]: worker_receive is an operation of ffn ranks; rank 1 is "
                        "attention 0"));
  EXPECT_THAT(backend_.launches, IsEmpty());
}

TEST_F(BufferTest, NamesTheBucketsThatTheBundleHas) {
  create();
  EXPECT_THAT(message_of(dispatch(1, 3)),
              HasSubstr("error[E208]: source_dispatch: bucket 3 is not in the bundle sample-2a1f\n"
                        "  note: use one of 2, 4, or add it to capacity.buckets"));
}

TEST_F(BufferTest, RefusesMoreTokensThanTheBucketHolds) {
  create();
  EXPECT_THAT(message_of(dispatch(3, 2)),
              HasSubstr("error[E203]: source_dispatch: 3 tokens exceed bucket 2"));
  EXPECT_TRUE(dispatch(2, 2).ok());
}

TEST_F(BufferTest, CollectNeedsADispatch) {
  create();
  EXPECT_THAT(message_of(collect(1)),
              HasSubstr("error[E502]: source_collect: rank 1 has no open exchange"));
}

TEST_F(BufferTest, OnlyOneExchangeIsOpen) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_THAT(message_of(dispatch(1, 2)),
              HasSubstr("error[E502]: source_dispatch: exchange 1 of rank 1 is still open"));
  ASSERT_TRUE(worker().worker_receive({.bucket = 2, .stream = kStream}).ok());
  EXPECT_THAT(message_of(worker().worker_receive({.bucket = 2, .stream = kStream})),
              HasSubstr("error[E502]: worker_receive: exchange 1 of rank 0 is still open"));
}

TEST_F(BufferTest, BucketsAlternateInOneBuffer) {
  create();
  for (const int bucket : {2, 4, 2}) {
    ASSERT_TRUE(dispatch(1, bucket).ok());
    ASSERT_TRUE(collect(1).ok());
  }
  EXPECT_EQ(backend_.launches[2].symbol, "afdep_sample_dispatch_b4");
  EXPECT_EQ(backend_.launches[2].as<DispatchArgs>().common.window,
            backend_.launches[0].as<DispatchArgs>().common.window);
}

TEST_F(BufferTest, ARefusedCallChangesNothing) {
  create();
  ASSERT_TRUE(dispatch(2, 2).ok());
  EXPECT_FALSE(collect(1).ok());  // the exchange has two tokens
  EXPECT_TRUE(collect(2).ok());
}

TEST_F(BufferTest, AReceiptIsForOneReplyOfOneExchangeOfOneBuffer) {
  create();
  const Receipt none;
  const Result<Received> first = worker().worker_receive({.bucket = 2, .stream = kStream});
  ASSERT_TRUE(first.ok());
  EXPECT_THAT(message_of(worker().worker_reply(first->rows, none, {.stream = kStream})),
              HasSubstr("error[E501]: worker_reply: the receipt is of no exchange"));
  ASSERT_TRUE(worker().worker_reply(first->rows, first->receipt, {.stream = kStream}).ok());
  EXPECT_THAT(message_of(worker().worker_reply(first->rows, first->receipt, {.stream = kStream})),
              HasSubstr("error[E501]: worker_reply: the receipt of exchange 1 was already used"));
  const Result<Received> second = worker().worker_receive({.bucket = 2, .stream = kStream});
  ASSERT_TRUE(second.ok());
  EXPECT_THAT(
      message_of(worker().worker_reply(second->rows, first->receipt, {.stream = kStream})),
      HasSubstr("error[E501]: worker_reply: the receipt is of exchange 1; the last one is 2"));
  EXPECT_TRUE(worker().worker_reply(second->rows, second->receipt, {.stream = kStream}).ok());
}

TEST_F(BufferTest, AReceiptOfAnotherBufferIsForeign) {
  create();
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  std::vector<Buffer> others;
  for (const auto& rank : ranks_) others.push_back(*Buffer::create(*rank, bundle, {}));
  const Result<Received> theirs = others[0].worker_receive({.bucket = 2, .stream = kStream});
  const Result<Received> ours = worker().worker_receive({.bucket = 2, .stream = kStream});
  ASSERT_TRUE(theirs.ok());
  ASSERT_TRUE(ours.ok());
  EXPECT_THAT(message_of(worker().worker_reply(ours->rows, theirs->receipt, {.stream = kStream})),
              HasSubstr("error[E501]: worker_reply: the receipt is of another buffer"));
}

TEST_F(BufferTest, AReplyHasTheShapeOfTheReceive) {
  create();
  const Result<Received> received = worker().worker_receive({.bucket = 2, .stream = kStream});
  ASSERT_TRUE(received.ok());
  EXPECT_THAT(message_of(worker().worker_reply(payload(31), received->receipt, {})),
              HasSubstr("error[E301]: worker_reply: rows is bf16 [31, 64]; this exchange needs "
                        "bf16 [32, 64]"));
  EXPECT_TRUE(worker().worker_reply(payload(32), received->receipt, {.stream = kStream}).ok());
}

TEST_F(BufferTest, TheFirstOperationWaitsForNoRankButNamesTheMissing) {
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 3);
  buffers_.push_back(*Buffer::create(*ranks_[0], bundle, {}));
  EXPECT_THAT(message_of(worker().worker_receive({.bucket = 2, .stream = kStream})),
              HasSubstr("error[E502]: the first operation comes before rank 1, 2 has created its "
                        "buffer"));
  buffers_.push_back(*Buffer::create(*ranks_[1], bundle, {}));
  buffers_.push_back(*Buffer::create(*ranks_[2], bundle, {}));
  EXPECT_TRUE(worker().worker_receive({.bucket = 2, .stream = kStream}).ok());
}

}  // namespace
}  // namespace afdep
