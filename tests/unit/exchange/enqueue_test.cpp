// The enqueue path of an operation: no allocation, so no text either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/gpu/counted_new.h"
#include "tests/unit/exchange/quiet_backend.h"

namespace afdep {
namespace {

// What a call allocates.
template <typename Call>
std::int64_t allocations_of(const Call& call) {
  const std::int64_t before = testing::allocations();
  const bool ok = call();
  const std::int64_t after = testing::allocations();
  EXPECT_TRUE(ok);
  return after - before;
}

TEST(Enqueue, CountsAllocations) {
  EXPECT_EQ(allocations_of([] {
              void* const memory = ::operator new(4);
              ::operator delete(memory);
              return memory != nullptr;
            }),
            1);
  EXPECT_EQ(allocations_of([] { return true; }), 0);
}

TEST(Enqueue, NoOperationAllocates) {
  QuietBackend backend;
  const bundle::Manifest manifest = bundle::sample_manifest();
  const bundle::Bundle bundle = bundle_of(manifest);
  const auto ranks = make_loopback(backend, manifest.ranks());
  std::vector<Buffer> buffers;
  for (const auto& rank : ranks) buffers.push_back(*Buffer::create(*rank, bundle, {}));
  void* const memory = *backend.allocate(1 << 16);
  constexpr auto kStream = static_cast<Stream>(7);
  constexpr auto kEvent = static_cast<Event>(8);
  const Tensor x = matrix(memory, DType::kBf16, 4, manifest.hidden);
  const Tensor ids = matrix(memory, DType::kInt64, 4, manifest.top_k);
  const Tensor weights = matrix(memory, DType::kFloat32, 4, manifest.top_k);
  // From the first exchange on: nothing is put off until the first call.
  for (int exchange = 0; exchange < 3; ++exchange) {
    for (std::size_t source = 1; source <= 2; ++source) {
      EXPECT_EQ(allocations_of([&] {
                  return buffers[source]
                      .source_dispatch(
                          x, ids, weights,
                          {.bucket = 4, .stream = kStream, .after = kEvent, .done = kEvent})
                      .ok();
                }),
                0);
      EXPECT_EQ(
          allocations_of([&] {
            return buffers[source]
                .source_collect({.out = x, .stream = kStream, .after = kEvent, .done = kEvent})
                .ok();
          }),
          0);
    }
    Tensor replies;
    Receipt receipt;
    EXPECT_EQ(allocations_of([&] {
                const Result<Received> received = buffers[0].worker_receive(
                    {.bucket = 4, .stream = kStream, .after = kEvent, .done = kEvent});
                replies = received->rows;
                receipt = received->receipt;
                return received.ok();
              }),
              0);
    EXPECT_EQ(allocations_of([&] {
                return buffers[0]
                    .worker_reply(replies, receipt,
                                  {.stream = kStream, .after = kEvent, .done = kEvent})
                    .ok();
              }),
              0);
    EXPECT_EQ(allocations_of([&] { return buffers[0].check().ok(); }), 0);
  }
  EXPECT_EQ(backend.launched, 3 * 6);
  backend.free(memory);
}

}  // namespace
}  // namespace afdep
