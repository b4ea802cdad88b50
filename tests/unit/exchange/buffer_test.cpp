// Creation, launches and their arguments, capture, events, closing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "afdep/generation.h"
#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(BufferTest, LoadsTheKernelsOfItsRoleOnly) {
  create();
  const std::vector<std::string> loaded = backend_.loaded();
  // The worker's two kernels a bucket, then each source's: two, and three where there is a view.
  ASSERT_EQ(loaded.size(), 4U + 5U + 5U);
  EXPECT_EQ(loaded[0], "afdep_sample_receive_b2");
  EXPECT_EQ(loaded[1], "afdep_sample_reply_b2");
  EXPECT_EQ(loaded[4], "afdep_sample_dispatch_b2");
  EXPECT_EQ(worker().role(), bundle::Role::kFfn);
  EXPECT_EQ(source(1).rank(), 2);
}

TEST_F(BufferTest, PassesTheKernelWhatItsRankOwns) {
  create();
  const Tensor x = payload(2);
  const Tensor i = ids(2);
  const Tensor w = weights(2);
  ASSERT_TRUE(source(1).source_dispatch(x, i, w, {.bucket = 2, .stream = kStream}).ok());
  ASSERT_EQ(backend_.launches.size(), 1U);
  const FakeLaunch& launch = backend_.launches[0];
  EXPECT_EQ(launch.symbol, "afdep_sample_dispatch_b2");
  EXPECT_EQ(launch.rank, 2);
  EXPECT_EQ(launch.grid, 2);
  EXPECT_EQ(launch.stream, kStream);
  EXPECT_TRUE(launch.programmatic);  // no limit on what is resident
  const auto args = launch.as<DispatchArgs>();
  EXPECT_EQ(args.x, x.data);
  EXPECT_EQ(args.ids, i.data);
  EXPECT_EQ(args.weights, w.data);
  EXPECT_EQ(args.tokens, 2U);
  EXPECT_EQ(args.common.index, 1U);
  EXPECT_EQ(args.common.timeout_ns, 30'000'000'000U);
  EXPECT_TRUE(backend_.owns(args.common.window));
  EXPECT_TRUE(backend_.owns(args.common.peer[0]));
  EXPECT_NE(args.common.peer[0], args.common.window);
  // One FFN rank; then the windows of both attention ranks, of which this is the second.
  EXPECT_TRUE(backend_.owns(args.common.peer[1]));
  EXPECT_EQ(args.common.peer[2], args.common.window);
  EXPECT_EQ(args.common.peer[3], nullptr);
}

TEST_F(BufferTest, SourcesAreTheWorkersPeersByTheirIndex) {
  create();
  ASSERT_TRUE(worker().worker_receive({.bucket = 2, .stream = kStream}).ok());
  ASSERT_TRUE(source(1)
                  .source_dispatch(payload(1), ids(1), weights(1), {.bucket = 2, .stream = kStream})
                  .ok());
  const auto receive = backend_.launches[0].as<ReceiveArgs>();
  const auto dispatch = backend_.launches[1].as<DispatchArgs>();
  EXPECT_EQ(receive.common.peer[1], dispatch.common.window);
  EXPECT_EQ(dispatch.common.peer[0], receive.common.window);
}

TEST_F(BufferTest, StartsEveryGenerationWordBeforeTheFirst) {
  create(bundle::sample_manifest(), {.generation_before_first = 41U});
  ASSERT_TRUE(dispatch(1, 2).ok());
  const auto args = backend_.launches[0].as<DispatchArgs>();
  EXPECT_EQ(args.common.control->started, 41U);
  EXPECT_EQ(args.common.control->finished, 41U);
  EXPECT_EQ(args.common.control->abort, 0U);
  // The region "done" is the first 256 bytes of an attention window; "view" behind it is zero.
  const auto* const words = reinterpret_cast<const std::uint32_t*>(args.common.window);
  EXPECT_EQ(words[0], 41U);
  EXPECT_EQ(words[63], 41U);
  EXPECT_EQ(words[64], 0U);
}

TEST_F(BufferTest, FirstGenerationIsOneUnlessToldOtherwise) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  const auto args = backend_.launches[0].as<DispatchArgs>();
  EXPECT_EQ(next_generation(args.common.control->finished), 1U);
}

TEST_F(BufferTest, ReceiveReturnsItsStorageInTheBucketsShape) {
  create();
  const Result<Received> received = worker().worker_receive({.bucket = 2, .stream = kStream});
  ASSERT_TRUE(received.ok()) << message_of(received);
  // 2 sources x 2 tokens x top-2 rows, and at most 3 rows of padding for each of 8 experts.
  EXPECT_EQ(to_string(received->rows), "bf16 [32, 64]");
  EXPECT_EQ(to_string(received->row_weights), "float32 [32]");
  EXPECT_EQ(to_string(received->ends), "int32 [8]");
  EXPECT_EQ(to_string(received->counts), "int32 [8]");
  EXPECT_THAT(received->host_counts, IsEmpty());
  const auto args = backend_.launches[0].as<ReceiveArgs>();
  EXPECT_EQ(args.rows, received->rows.data);
  EXPECT_EQ(args.row_weights, received->row_weights.data);
  EXPECT_EQ(args.ends, received->ends.data);
  EXPECT_EQ(args.counts, received->counts.data);
}

TEST_F(BufferTest, ReceiveWritesIntoTheCallersStorage) {
  create(bundle::sample_manifest(), {.receive_storage = false});
  const Result<Received> none = worker().worker_receive({.bucket = 2, .stream = kStream});
  EXPECT_THAT(message_of(none),
              HasSubstr("error[E301]: worker_receive: the buffer was created without receive "
                        "storage"));
  const ReceiveStorage into{.rows = payload(32),
                            .row_weights = vector(device_memory(32 * 4), DType::kFloat32, 32),
                            .ends = vector(device_memory(32), DType::kInt32, 8),
                            .counts = vector(device_memory(32), DType::kInt32, 8)};
  const Result<Received> received =
      worker().worker_receive({.bucket = 2, .stream = kStream, .into = into});
  ASSERT_TRUE(received.ok()) << message_of(received);
  EXPECT_EQ(backend_.launches[0].as<ReceiveArgs>().rows, into.rows.data);
  ReceiveStorage wrong = into;
  wrong.ends = vector(into.ends.data, DType::kInt64, 8);
  ASSERT_TRUE(worker().worker_reply(received->rows, received->receipt, {.stream = kStream}).ok());
  EXPECT_THAT(
      message_of(worker().worker_receive({.bucket = 2, .stream = kStream, .into = wrong})),
      HasSubstr("error[E302]: worker_receive: into.ends is int64 [8]; the dtype must be int32"));
}

TEST_F(BufferTest, EventsComeBeforeAndAfterTheKernel) {
  create();
  const DispatchOptions options{.bucket = 2,
                                .stream = kStream,
                                .after = static_cast<Event>(3),
                                .done = static_cast<Event>(4)};
  ASSERT_TRUE(source().source_dispatch(payload(1), ids(1), weights(1), options).ok());
  EXPECT_THAT(backend_.log, ElementsAre("wait 3", "launch afdep_sample_dispatch_b2", "record 4"));
}

TEST_F(BufferTest, HostCountsAreAlignedAndCutTheRows) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.host_counts = true;
  manifest.capture = false;
  create(manifest, {.receive_storage = false});
  const ReceiveStorage into{.rows = payload(32),
                            .row_weights = vector(device_memory(32 * 4), DType::kFloat32, 32),
                            .ends = vector(device_memory(32), DType::kInt32, 8),
                            .counts = vector(device_memory(32), DType::kInt32, 8)};
  // What the kernel would write: live rows an expert. Aligned to 4 they are 4, 0, 8 and 4.
  const std::int32_t counts[8] = {1, 0, 5, 4, 0, 0, 0, 0};
  std::copy_n(counts, 8, static_cast<std::int32_t*>(into.counts.data));
  const Result<Received> received = worker().worker_receive(
      {.bucket = 2, .stream = kStream, .read_host_counts = true, .into = into});
  ASSERT_TRUE(received.ok()) << message_of(received);
  EXPECT_THAT(received->host_counts, ElementsAre(4, 0, 8, 4, 0, 0, 0, 0));
  EXPECT_EQ(received->rows.shape[0], 16);
  EXPECT_EQ(received->row_weights.shape[0], 16);
  EXPECT_THAT(backend_.log, ElementsAre("launch afdep_sample_receive_b2", "synchronize"));
  EXPECT_TRUE(worker().worker_reply(received->rows, received->receipt, {.stream = kStream}).ok());
}

TEST_F(BufferTest, HostCountsAreRefusedWhereTheBundleHasNone) {
  create();
  const Result<Received> received =
      worker().worker_receive({.bucket = 2, .stream = kStream, .read_host_counts = true});
  EXPECT_THAT(message_of(received),
              HasSubstr("error[E403]: worker_receive: read_host_counts, but sample-2a1f was "
                        "generated without it"));
  EXPECT_THAT(backend_.launches, IsEmpty());
}

TEST_F(BufferTest, AViewIsAStridedTensorOfTheWindow) {
  bundle::Manifest manifest = bundle::sample_manifest();
  // Rows 192 bytes apart.
  manifest.attention.window[1].item_bytes = 192;
  manifest.attention.window[1].peer_bytes = 768;
  manifest.attention.window[1].half_bytes = 768;
  manifest.attention.window_bytes = 1024;
  create(manifest);
  ASSERT_TRUE(dispatch(3, 4).ok());
  const Result<Tensor> view = source().source_collect({.view = true, .stream = kStream});
  ASSERT_TRUE(view.ok()) << message_of(view);
  EXPECT_EQ(to_string(*view), "bf16 [3, 64] with strides [96, 1]");
  EXPECT_EQ(backend_.launches[1].symbol, "afdep_sample_collect_view_b4");
  const auto args = backend_.launches[1].as<CollectArgs>();
  EXPECT_EQ(args.out, view->data);
  EXPECT_EQ(args.out, args.common.window + 256);
}

TEST_F(BufferTest, WithoutAViewKernelTheOrdinaryOneCollectsIntoTheView) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  const Result<Tensor> view = source().source_collect({.view = true, .stream = kStream});
  ASSERT_TRUE(view.ok()) << message_of(view);
  EXPECT_EQ(backend_.launches[1].symbol, "afdep_sample_collect_b2");
  EXPECT_EQ(backend_.launches[1].as<CollectArgs>().out, view->data);
}

TEST_F(BufferTest, OtherLayoutsHaveNoView) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.has_view = false;
  create(manifest);
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_THAT(message_of(source().source_collect({.view = true, .stream = kStream})),
              HasSubstr("error[E404]: source_collect: sample-2a1f (2A1F) has no view"));
  EXPECT_TRUE(collect(1).ok());
}

TEST_F(BufferTest, IsNotCreatedInsideACapture) {
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 3);
  backend_.capturing.insert(kStream);
  const Result<Buffer> buffer = Buffer::create(*ranks_[0], bundle, {.stream = kStream});
  EXPECT_THAT(message_of(buffer),
              HasSubstr("error[E503]: Buffer::create: the stream is capturing"));
}

TEST_F(BufferTest, AnExchangeIsCapturedWholeOrNotAtAll) {
  create();
  backend_.capturing.insert(kStream);
  ASSERT_TRUE(dispatch(1, 2).ok());
  backend_.capturing.clear();
  EXPECT_THAT(message_of(collect(1)),
              HasSubstr("error[E502]: source_collect: exchange 1 began inside a capture and would "
                        "end outside it"));
  backend_.capturing.insert(kStream);
  EXPECT_TRUE(collect(1).ok());
}

TEST_F(BufferTest, GraphModeOffRefusesACapture) {
  bundle::Manifest manifest = bundle::sample_manifest();
  manifest.capture = false;
  create(manifest);
  backend_.capturing.insert(kStream);
  EXPECT_THAT(message_of(dispatch(1, 2)),
              HasSubstr("error[E503]: source_dispatch: the stream is capturing a graph, but "
                        "sample-2a1f has graph.mode: off"));
}

TEST_F(BufferTest, GroupAndBundleMustHaveTheSameSize) {
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 4);
  EXPECT_THAT(message_of(Buffer::create(*ranks_[0], bundle, {})),
              HasSubstr("error[E101]: Buffer::create: the communicator has 4 ranks, the bundle "
                        "sample-2a1f is for 3 (2A1F)"));
}

TEST_F(BufferTest, NamesTheArchThatTheBundleLacks) {
  backend_.arch_name = "sm_80a";
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 3);
  const Result<Buffer> buffer = Buffer::create(*ranks_[0], bundle, {});
  EXPECT_THAT(message_of(buffer),
              HasSubstr("error[E402]: bundle sample-2a1f holds no kernel afdep_sample_receive_b2 "
                        "for sm_80a (a fake GPU); it is compiled for: sm_100a, sm_90a"));
}

TEST_F(BufferTest, AFailedCreationGivesEverythingBack) {
  const bundle::Bundle bundle = bundle_of(bundle::sample_manifest());
  ranks_ = make_loopback(backend_, 3);
  // Three windows and the private memory, but no fault records.
  backend_.allocations_left = 4;
  EXPECT_THAT(message_of(Buffer::create(*ranks_[0], bundle, {})), HasSubstr("error[E601]"));
  ranks_.clear();
  EXPECT_TRUE(backend_.blocks.empty());
}

TEST_F(BufferTest, CloseSynchronizesFreesAndMayBeRepeated) {
  create();
  for (Buffer& buffer : buffers_) EXPECT_TRUE(buffer.close().ok());
  EXPECT_TRUE(backend_.blocks.empty());
  EXPECT_THAT(backend_.log, ElementsAre("synchronize all", "synchronize all", "synchronize all"));
  EXPECT_TRUE(source().close().ok());
  EXPECT_THAT(message_of(dispatch(1, 2)),
              HasSubstr("error[E502]: source_dispatch: the buffer is closed"));
}

TEST_F(BufferTest, CloseIsRefusedWhileAnExchangeIsOpen) {
  create();
  ASSERT_TRUE(dispatch(1, 2).ok());
  EXPECT_THAT(message_of(source().close()),
              HasSubstr("error[E502]: close: exchange 1 of rank 1 is open"));
  ASSERT_TRUE(collect(1).ok());
  EXPECT_TRUE(source().close().ok());
}

TEST_F(BufferTest, AWindowOutlivesItsOwnersBufferUntilAllHaveClosed) {
  create();
  const std::size_t with_all = backend_.blocks.size();
  EXPECT_TRUE(worker().close().ok());
  // The worker's private memory and fault records are gone; three windows remain.
  EXPECT_EQ(backend_.blocks.size(), with_all - 2);
}

}  // namespace
}  // namespace afdep
