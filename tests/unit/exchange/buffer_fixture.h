// Buffers of the sample bundle (2A1F: world rank 0 is the worker, 1 and 2 are sources) on the fake
// backend.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "afdep/abi.h"
#include "runtime/exchange.h"
#include "runtime/transport/loopback.h"
#include "tests/unit/bundle/sample_manifest.h"
#include "tests/unit/exchange/fake_backend.h"

namespace afdep {

template <typename T>
std::string message_of(const Result<T>& result) {
  return result.ok() ? "no failure" : to_string(result.diagnostics().front());
}

inline bundle::Bundle bundle_of(const bundle::Manifest& manifest) {
  return *bundle::make_bundle(manifest, bundle::sample_files(manifest));
}

class BufferTest : public ::testing::Test {
 protected:
  static constexpr Stream kStream = static_cast<Stream>(77);
  static constexpr int kHidden = 64;
  static constexpr int kTopK = 2;

  // Every rank's buffer, in world order.
  void create(const bundle::Manifest& manifest = bundle::sample_manifest(),
              const BufferOptions& options = {}) {
    const bundle::Bundle bundle = bundle_of(manifest);
    ranks_ = make_loopback(backend_, manifest.ranks());
    for (const auto& rank : ranks_) {
      Result<Buffer> buffer = Buffer::create(*rank, bundle, options);
      ASSERT_TRUE(buffer.ok()) << to_string(buffer.diagnostics());
      buffers_.push_back(std::move(*buffer));
    }
  }

  void TearDown() override {
    buffers_.clear();
    ranks_.clear();
    for (void* memory : memory_) backend_.free(memory);
  }

  Buffer& worker() { return buffers_[0]; }
  Buffer& source(int index = 0) { return buffers_[static_cast<std::size_t>(1 + index)]; }

  void* device_memory(std::size_t bytes) {
    memory_.push_back(*backend_.allocate(bytes));
    return memory_.back();
  }
  Tensor payload(std::int64_t rows) {
    return matrix(device_memory(static_cast<std::size_t>(rows) * kHidden * 2), DType::kBf16, rows,
                  kHidden);
  }
  Tensor ids(std::int64_t tokens) {
    return matrix(device_memory(static_cast<std::size_t>(tokens) * kTopK * 8), DType::kInt64,
                  tokens, kTopK);
  }
  Tensor weights(std::int64_t tokens) {
    return matrix(device_memory(static_cast<std::size_t>(tokens) * kTopK * 4), DType::kFloat32,
                  tokens, kTopK);
  }
  Result<void> dispatch(std::int64_t tokens, int bucket) {
    return source().source_dispatch(payload(tokens), ids(tokens), weights(tokens),
                                    {.bucket = bucket, .stream = kStream});
  }
  Result<Tensor> collect(std::int64_t tokens) {
    return source().source_collect({.out = payload(tokens), .stream = kStream});
  }

  FakeBackend backend_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  std::vector<Buffer> buffers_;
  std::vector<void*> memory_;
};

}  // namespace afdep
