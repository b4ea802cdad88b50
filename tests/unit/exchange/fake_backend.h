// A backend that records what it is asked to do and runs no kernel. Memory is the process's own.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"

namespace afdep {

class FakeKernel : public LoadedKernel {
 public:
  explicit FakeKernel(std::string symbol) : symbol_(std::move(symbol)) {}
  [[nodiscard]] std::string_view symbol() const override { return symbol_; }
  [[nodiscard]] int blocks_per_sm(int /*threads*/, std::size_t /*shared*/) const override {
    return 1;
  }

 private:
  std::string symbol_;
};

struct FakeLaunch {
  std::string symbol;
  int rank = 0;
  int grid = 0;
  std::size_t shared_bytes = 0;
  bool programmatic = false;
  Stream stream{};
  std::vector<std::byte> args;

  template <typename Args>
  [[nodiscard]] Args as() const {
    Args result{};
    EXPECT_EQ(args.size(), sizeof(Args));
    std::memcpy(&result, args.data(), std::min(args.size(), sizeof(Args)));
    return result;
  }
};

class FakeBackend : public Backend {
 public:
  ~FakeBackend() override { EXPECT_TRUE(blocks.empty()) << blocks.size() << " blocks leak"; }

  // What the backend claims to be.
  std::string arch_name = "sm_90a";
  std::optional<SmLimits> limits;
  std::vector<KernelImage> images;
  int sms = 132;

  // What happened.
  std::vector<FakeLaunch> launches;
  std::vector<std::string> log;  // "launch <symbol>", "wait 3", "record 4", "synchronize"
  std::map<void*, std::size_t> blocks;
  std::set<Stream> capturing;
  std::size_t allocations_left = 1000;

  [[nodiscard]] std::string_view name() const override { return "fake"; }
  [[nodiscard]] std::string_view device_name() const override { return "a fake GPU"; }
  [[nodiscard]] std::string_view arch() const override { return arch_name; }
  [[nodiscard]] int sm_count() const override { return sms; }
  [[nodiscard]] std::optional<SmLimits> sm_limits() const override { return limits; }

  Result<void*> allocate(std::size_t bytes) override {
    if (allocations_left == 0) return Failure(ErrorCode::kMemory, "the fake GPU is full");
    --allocations_left;
    const std::size_t padded = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
    void* const memory = std::aligned_alloc(256, padded);
    std::memset(memory, 0, padded);
    blocks[memory] = padded;
    return memory;
  }
  void free(void* memory) override {
    EXPECT_EQ(blocks.erase(memory), 1U);
    std::free(memory);
  }
  Result<HostMapped> allocate_host_mapped(std::size_t bytes) override {
    Result<void*> memory = allocate(bytes);
    if (!memory.ok()) return memory.failure();
    return HostMapped{*memory, *memory};
  }
  void free_host_mapped(const HostMapped& memory) override { free(memory.host); }
  [[nodiscard]] bool owns(const void* memory) const override {
    const auto* const at = static_cast<const std::byte*>(memory);
    return std::ranges::any_of(blocks, [at](const auto& block) {
      const auto* const begin = static_cast<const std::byte*>(block.first);
      return at >= begin && at < begin + block.second;
    });
  }

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
  Result<void> fill(void* memory, std::uint8_t byte, std::size_t bytes) override {
    std::memset(memory, byte, bytes);
    return {};
  }
  Result<void> copy_on_stream(void* to, const void* from, std::size_t bytes,
                              Stream /*stream*/) override {
    return copy_to_device(to, from, bytes);
  }

  Result<Stream> create_stream() override { return static_cast<Stream>(++handles_); }
  void destroy_stream(Stream /*stream*/) override {}
  Result<void> synchronize(Stream /*stream*/) override {
    log.emplace_back("synchronize");
    return {};
  }
  Result<void> synchronize_all() override {
    log.emplace_back("synchronize all");
    return {};
  }
  [[nodiscard]] bool is_capturing(Stream stream) const override {
    return capturing.contains(stream);
  }
  Result<Event> create_event() override { return static_cast<Event>(++handles_); }
  void destroy_event(Event /*event*/) override {}
  Result<void> record(Event event, Stream /*stream*/) override {
    log.push_back("record " + std::to_string(static_cast<std::uintptr_t>(event)));
    return {};
  }
  Result<void> wait(Event event, Stream /*stream*/) override {
    log.push_back("wait " + std::to_string(static_cast<std::uintptr_t>(event)));
    return {};
  }
  Result<std::chrono::nanoseconds> elapsed(Event /*from*/, Event /*to*/) override {
    return std::chrono::nanoseconds(0);
  }

  Result<const LoadedKernel*> load(const KernelImage& image) override {
    images.push_back(image);
    kernels_.push_back(std::make_unique<FakeKernel>(image.symbol));
    return kernels_.back().get();
  }
  Result<void> launch(const Launch& launch, Stream stream) override {
    const auto* const args = static_cast<const std::byte*>(launch.args);
    launches.push_back({.symbol = std::string(launch.kernel->symbol()),
                        .rank = launch.rank,
                        .grid = launch.grid,
                        .shared_bytes = launch.shared_bytes,
                        .programmatic = launch.programmatic,
                        .stream = stream,
                        .args = {args, args + launch.args_bytes}});
    log.push_back("launch " + launches.back().symbol);
    return {};
  }
  [[nodiscard]] std::vector<std::string> loaded() const {
    std::vector<std::string> symbols;
    for (const auto& kernel : kernels_) symbols.emplace_back(kernel->symbol());
    return symbols;
  }

  Result<void> begin_capture(Stream stream) override {
    capturing.insert(stream);
    return {};
  }
  Result<Graph> end_capture(Stream stream) override {
    capturing.erase(stream);
    return static_cast<Graph>(++handles_);
  }
  Result<void> replay(Graph /*graph*/, Stream /*stream*/) override { return {}; }
  void destroy_graph(Graph /*graph*/) override {}

 private:
  std::uintptr_t handles_ = 0;
  std::vector<std::unique_ptr<FakeKernel>> kernels_;
};

}  // namespace afdep
