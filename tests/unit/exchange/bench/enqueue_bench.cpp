// What enqueueing the operations of an exchange costs the host, beside the driver's launches and
// events: the figure of docs/runtime.md.
#include <benchmark/benchmark.h>

#include <cstdlib>

#include "tests/unit/exchange/quiet_backend.h"

namespace afdep {
namespace {

void require(bool ok) {
  if (!ok) std::abort();
}

// Both sources and the worker of a 2A1F exchange: six operations, each behind an event and followed
// by one.
void exchange(benchmark::State& state) {
  constexpr int kOperations = 6;
  constexpr auto kStream = static_cast<Stream>(7);
  constexpr auto kEvent = static_cast<Event>(8);
  QuietBackend backend;
  const bundle::Manifest manifest = bundle::sample_manifest();
  const bundle::Bundle bundle = bundle_of(manifest);
  const auto ranks = make_loopback(backend, manifest.ranks());
  std::vector<Buffer> buffers;
  for (const auto& rank : ranks) buffers.push_back(*Buffer::create(*rank, bundle, {}));
  void* const memory = *backend.allocate(1 << 16);
  const Tensor x = matrix(memory, DType::kBf16, 4, manifest.hidden);
  const Tensor ids = matrix(memory, DType::kInt64, 4, manifest.top_k);
  const Tensor weights = matrix(memory, DType::kFloat32, 4, manifest.top_k);
  for (auto _ : state) {
    for (std::size_t source = 1; source <= 2; ++source) {
      require(
          buffers[source]
              .source_dispatch(x, ids, weights,
                               {.bucket = 4, .stream = kStream, .after = kEvent, .done = kEvent})
              .ok());
      require(buffers[source]
                  .source_collect({.out = x, .stream = kStream, .after = kEvent, .done = kEvent})
                  .ok());
    }
    const Result<Received> received = buffers[0].worker_receive(
        {.bucket = 4, .stream = kStream, .after = kEvent, .done = kEvent});
    require(received.ok());
    require(buffers[0]
                .worker_reply(received->rows, received->receipt,
                              {.stream = kStream, .after = kEvent, .done = kEvent})
                .ok());
  }
  state.counters["operation"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kOperations,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  backend.free(memory);
}
BENCHMARK(exchange);

}  // namespace
}  // namespace afdep
