// What the runtime must refuse on any backend, without a trace in the exchange that it belongs to.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/gpu/exchange_bodies.h"

namespace afdep::exchange_test {

// The exact row counts on the host, and tensors cut to them.
inline void host_counts_cut_the_rows(Backend& backend, const bundle::Bundle& bundle,
                                     const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  if (!m.host_counts) GTEST_SKIP() << m.name << " was generated without receive.host_counts";
  Group group(backend, m.ranks());
  World world(group, bundle, {.read_host_counts = true});
  Generator random(11);
  for (int round = 0; round < scale.eager_rounds && !::testing::Test::HasFailure(); ++round) {
    const int bucket = random_bucket(m, random);
    const ExchangeData data =
        random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
    world.fill(0, data);
    // A receive waits for its kernel, and so for every dispatch.
    for (int i = 0; i < m.attention_ranks; ++i) {
      world.enqueue_first(0, m.world_rank(bundle::Role::kAttention, i), data);
    }
    for (int i = 0; i < m.ffn_ranks; ++i) {
      const int rank = m.world_rank(bundle::Role::kFfn, i);
      world.enqueue_first(0, rank, data);
      std::vector<int> aligned;
      int sum = 0;
      for (const int count : data.received[static_cast<std::size_t>(i)].counts) {
        const int alignment = m.expert_alignment;
        aligned.push_back((count + alignment - 1) / alignment * alignment);
        sum += aligned.back();
      }
      EXPECT_THAT(world.received(0, rank).host_counts, ::testing::ElementsAreArray(aligned));
      EXPECT_EQ(world.received(0, rank).rows.shape[0], sum);
      EXPECT_EQ(world.received(0, rank).row_weights.shape[0], sum);
      world.enqueue_second(0, rank, data);
    }
    for (int i = 0; i < m.attention_ranks; ++i) {
      world.enqueue_second(0, m.world_rank(bundle::Role::kAttention, i), data);
    }
    group.synchronize();
    world.expect(0, data, "round " + std::to_string(round));
  }
}

// A call must have failed with `code`, saying `words`.
template <typename T>
void expect_refused(const Result<T>& result, ErrorCode code, std::string_view words) {
  ASSERT_FALSE(result.ok()) << "not refused; expected: " << words;
  const Diagnostic& said = result.diagnostics().front();
  EXPECT_EQ(said.code, code) << said.message;
  EXPECT_THAT(said.message, ::testing::HasSubstr(std::string(words)));
}

// Calls of an attention rank that has no exchange open.
inline void misuse_dispatch(Backend& backend, World& world, int rank, const ExchangeData& data,
                            std::uint8_t* memory, Stream stream) {
  const bundle::Manifest& m = world.manifest();
  Buffer& buffer = world.buffer(rank);
  const std::int64_t tokens = data.bucket;
  const DType id_type = m.id_type == bundle::IdType::kInt32 ? DType::kInt32 : DType::kInt64;
  const DType other_id_type = m.id_type == bundle::IdType::kInt32 ? DType::kInt64 : DType::kInt32;
  struct Inputs {
    Tensor x, ids, weights;
    int bucket;
  };
  const auto inputs = [&](std::int64_t count) {
    return Inputs{.x = matrix(memory, DType::kBf16, count, m.hidden),
                  .ids = matrix(memory, id_type, count, m.top_k),
                  .weights = matrix(memory, DType::kFloat32, count, m.top_k),
                  .bucket = data.bucket};
  };
  const auto refuse = [&](const Inputs& in, ErrorCode code, std::string_view words) {
    expect_refused(
        buffer.source_dispatch(in.x, in.ids, in.weights, {.bucket = in.bucket, .stream = stream}),
        code, words);
  };
  refuse(inputs(tokens + 1), ErrorCode::kTokens,
         std::to_string(tokens + 1) + " tokens exceed bucket " + std::to_string(tokens));
  refuse(inputs(-1), ErrorCode::kPayloadTensor, "x is bf16 [-1, ");
  Inputs in = inputs(1);
  in.bucket = m.buckets.back().tokens + 1;
  refuse(in, ErrorCode::kBuckets, "bucket " + std::to_string(in.bucket) + " is not in the bundle");
  in = inputs(1);
  in.x.dtype = DType::kFloat16;
  refuse(in, ErrorCode::kPayloadTensor, "the dtype must be bf16");
  in = inputs(1);
  in.ids.dtype = other_id_type;
  refuse(in, ErrorCode::kRouteTensor, "ids is ");
  in = inputs(1);
  in.weights.dtype = DType::kBf16;
  refuse(in, ErrorCode::kRouteTensor, "the dtype must be float32");
  in = inputs(1);
  in.x.shape[1] = m.hidden + 8;
  refuse(in, ErrorCode::kPayloadTensor, "this exchange needs bf16 [1, ");
  in = inputs(1);
  in.ids.shape[1] = m.top_k + 1;
  refuse(in, ErrorCode::kRouteTensor, "this exchange needs ");
  in = inputs(1);
  in.weights.shape[0] = 0;
  refuse(in, ErrorCode::kRouteTensor, "this exchange needs float32 [1, ");
  in = inputs(1);
  in.x.stride[1] = 2;
  refuse(in, ErrorCode::kPayloadTensor, "it must be contiguous");
  in = inputs(1);
  std::vector<Bf16> host(static_cast<std::size_t>(m.hidden));
  in.x.data = host.data();
  refuse(in, ErrorCode::kPayloadTensor, "is not memory of " + std::string(backend.device_name()));
  in = inputs(1);
  in.x.data = memory + 2;
  refuse(in, ErrorCode::kPayloadTensor, "is not aligned to 16 bytes");
  expect_refused(buffer.source_collect({.out = in.x, .stream = stream}), ErrorCode::kCallOrder,
                 "has no open exchange");
  expect_refused(buffer.worker_receive({.bucket = data.bucket, .stream = stream}),
                 ErrorCode::kCallOrder, "worker_receive is an operation of ffn ranks");
}

// Calls of an attention rank between its dispatch and its collect.
inline void misuse_collect(Backend& backend, World& world, int rank, const ExchangeData& data,
                           std::uint8_t* memory, Stream stream) {
  const bundle::Manifest& m = world.manifest();
  Buffer& buffer = world.buffer(rank);
  const std::int64_t tokens = data.bucket;
  const Tensor out = matrix(memory, DType::kBf16, tokens, m.hidden);
  expect_refused(buffer.close(), ErrorCode::kCallOrder, "open");
  expect_refused(buffer.source_dispatch(out, out, out, {.bucket = data.bucket, .stream = stream}),
                 ErrorCode::kCallOrder, "is still open");
  expect_refused(buffer.source_collect({.stream = stream}), ErrorCode::kPayloadTensor,
                 "neither out nor view");
  expect_refused(buffer.source_collect({.out = out, .view = true, .stream = stream}),
                 ErrorCode::kPayloadTensor, "both out and view");
  if (!m.has_view) {
    expect_refused(buffer.source_collect({.view = true, .stream = stream}), ErrorCode::kUnsupported,
                   "has no view");
  }
  Tensor fewer = out;
  fewer.shape[0] = tokens - 1;
  expect_refused(buffer.source_collect({.out = fewer, .stream = stream}), ErrorCode::kPayloadTensor,
                 "this exchange needs bf16 [" + std::to_string(tokens) + ", ");
  if (!m.capture) return;
  // The other half of the exchange lies outside.
  require(backend.begin_capture(stream));
  expect_refused(buffer.source_collect({.out = out, .stream = stream}), ErrorCode::kCallOrder,
                 "began outside a capture and would end inside it");
  backend.destroy_graph(require(backend.end_capture(stream)));
}

// Calls of an FFN rank before its receive.
inline void misuse_receive(World& world, int rank, const ExchangeData& data, std::uint8_t* memory,
                           Stream stream) {
  const bundle::Manifest& m = world.manifest();
  Buffer& buffer = world.buffer(rank);
  const std::int64_t rows = m.find_bucket(data.bucket)->receive_rows;
  const Tensor replies = matrix(memory, DType::kBf16, rows, m.hidden);
  expect_refused(buffer.worker_reply(replies, Receipt{}, {.stream = stream}), ErrorCode::kReceipt,
                 "the receipt is of no exchange");
  expect_refused(buffer.worker_receive({.bucket = 0, .stream = stream}), ErrorCode::kBuckets,
                 "bucket 0 is not in the bundle");
  expect_refused(buffer.worker_receive({.bucket = data.bucket, .stream = stream}),
                 ErrorCode::kPayloadTensor, "created without receive storage");
  if (!m.host_counts) {
    expect_refused(
        buffer.worker_receive({.bucket = data.bucket, .stream = stream, .read_host_counts = true}),
        ErrorCode::kHostCounts, "read_host_counts");
  }
  const auto experts = static_cast<std::int64_t>(m.local_experts());
  const ReceiveStorage good{.rows = replies,
                            .row_weights = vector(memory, DType::kFloat32, rows),
                            .ends = vector(memory, DType::kInt32, experts),
                            .counts = vector(memory, DType::kInt32, experts)};
  const auto refuse = [&](const ReceiveStorage& into, ErrorCode code, std::string_view words) {
    expect_refused(buffer.worker_receive({.bucket = data.bucket, .stream = stream, .into = into}),
                   code, words);
  };
  ReceiveStorage into = good;
  into.rows.shape[0] = rows - 1;
  refuse(into, ErrorCode::kPayloadTensor, "into.rows is bf16");
  into = good;
  into.row_weights.dtype = DType::kBf16;
  refuse(into, ErrorCode::kRouteTensor, "into.row_weights is bf16");
  into = good;
  into.ends.shape[0] = experts + 1;
  refuse(into, ErrorCode::kRouteTensor, "into.ends is int32");
  into = good;
  into.counts.stride[0] = 2;
  if (experts > 1) refuse(into, ErrorCode::kRouteTensor, "it must be contiguous");
}

// Calls of an FFN rank between its receive and its reply. `foreign` is another buffer's receipt.
inline void misuse_reply(World& world, int rank, const ExchangeData& data, std::uint8_t* memory,
                         Stream stream, const Receipt& foreign) {
  const bundle::Manifest& m = world.manifest();
  Buffer& buffer = world.buffer(rank);
  const Receipt own = world.received(0, rank).receipt;
  const std::int64_t rows = m.find_bucket(data.bucket)->receive_rows;
  const Tensor replies = matrix(memory, DType::kBf16, rows, m.hidden);
  expect_refused(buffer.close(), ErrorCode::kCallOrder, "open");
  expect_refused(buffer.worker_receive({.bucket = data.bucket, .stream = stream}),
                 ErrorCode::kCallOrder, "is still open");
  expect_refused(buffer.worker_reply(replies, foreign, {.stream = stream}), ErrorCode::kReceipt,
                 "the receipt is of another buffer");
  Tensor wrong = replies;
  wrong.shape[0] = rows + 1;
  expect_refused(buffer.worker_reply(wrong, own, {.stream = stream}), ErrorCode::kPayloadTensor,
                 "this exchange needs bf16 [" + std::to_string(rows) + ", ");
  wrong = replies;
  wrong.dtype = DType::kFloat32;
  expect_refused(buffer.worker_reply(wrong, own, {.stream = stream}), ErrorCode::kPayloadTensor,
                 "the dtype must be bf16");
}

// Every mistake of a caller is refused by name, and the exchanges around it are right.
inline void refused_calls_change_nothing(Backend& backend, const bundle::Bundle& bundle,
                                         const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  const int bucket = m.buckets.front().tokens;
  Group group(backend, m.ranks());
  World world(group, bundle, {});
  World other(group, bundle, {});
  Generator random(12);
  const ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
  const ExchangeData more = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
  const auto rows = static_cast<std::size_t>(m.find_bucket(bucket)->receive_rows) + 8;
  const std::size_t bytes =
      rows * std::max<std::size_t>(static_cast<std::size_t>(m.row_bytes), 8U * 32U);
  auto* const memory = static_cast<std::uint8_t*>(require(backend.allocate(bytes)));
  const int last_source = m.world_rank(bundle::Role::kAttention, m.attention_ranks - 1);
  const int last_worker = m.world_rank(bundle::Role::kFfn, m.ffn_ranks - 1);
  const Stream source_stream = group.stream(last_source);
  const Stream worker_stream = group.stream(last_worker);

  // The other buffers' exchange stays open around all of it.
  world.fill(0, data);
  other.fill(0, more);
  for (int rank = 0; rank < group.size(); ++rank) other.enqueue_first(0, rank, more);
  group.synchronize();
  const Receipt foreign = other.received(0, last_worker).receipt;

  misuse_dispatch(backend, world, last_source, data, memory, source_stream);
  misuse_receive(world, last_worker, data, memory, worker_stream);
  for (int rank = 0; rank < group.size(); ++rank) world.enqueue_first(0, rank, data);
  group.synchronize();
  misuse_collect(backend, world, last_source, data, memory, source_stream);
  misuse_reply(world, last_worker, data, memory, worker_stream, foreign);
  for (int rank = 0; rank < group.size(); ++rank) {
    world.enqueue_second(0, rank, data);
    other.enqueue_second(0, rank, more);
  }
  const Tensor replies =
      matrix(memory, DType::kBf16, m.find_bucket(bucket)->receive_rows, m.hidden);
  expect_refused(
      world.buffer(last_worker)
          .worker_reply(replies, world.received(0, last_worker).receipt, {.stream = worker_stream}),
      ErrorCode::kReceipt, "was already used");
  group.synchronize();
  world.expect(0, data, "around the refused calls");
  other.expect(0, more, "of the other buffers");

  if (m.capture) {
    require(backend.begin_capture(source_stream));
    expect_refused(Buffer::create(group.rank(last_source), bundle, {.stream = source_stream}),
                   ErrorCode::kInCapture, "the stream is capturing a graph");
    backend.destroy_graph(require(backend.end_capture(source_stream)));
  }
  backend.free(memory);
  for (int rank = 0; rank < group.size(); ++rank) EXPECT_TRUE(world.buffer(rank).close().ok());
  expect_refused(world.buffer(last_source).source_collect({.stream = source_stream}),
                 ErrorCode::kCallOrder, "the buffer is closed");
}

}  // namespace afdep::exchange_test
