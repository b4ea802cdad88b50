// A bench to put small hand-written kernels on.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/emulator/emulator_backend.h"

namespace afdep {

// Includes and opening lines of every test kernel.
inline std::string kernel_text(const std::string& body) {
  return "#include \"afdep/abi.h\"\n"
         "#include \"afdep/bf16.cuh\"\n"
         "#include \"afdep/packet.cuh\"\n" +
         body;
}

struct Shape {
  int grid = 1;
  int threads = 32;
  std::size_t shared_bytes = 0;
  bool programmatic = false;
  int rank = 0;
};

class Bench {
 public:
  explicit Bench(std::uint64_t seed = 1, bool stop_on_stall = true, int resident_blocks = 1 << 20,
                 emulator::Memory memory = emulator::Memory::kWeak) {
    EmulatorOptions options;
    options.schedule.seed = seed;
    options.schedule.stop_on_stall = stop_on_stall;
    options.schedule.memory = memory;
    options.schedule.resident_blocks = resident_blocks;
    options.schedule.fruitless_accesses = 1'000'000;
    backend_ = std::move(EmulatorBackend::create(options).value());
    stream_ = backend_->create_stream().value();
  }

  EmulatorBackend& operator*() { return *backend_; }
  EmulatorBackend* operator->() { return backend_.get(); }
  [[nodiscard]] Stream stream() const { return stream_; }

  // A kernel that must compile.
  const LoadedKernel* kernel(const std::string& symbol, const std::string& body) {
    source_ = kernel_text(body);
    auto loaded = backend_->load({symbol, symbol + ".cu", source_, {}});
    EXPECT_TRUE(loaded.ok()) << to_string(loaded.diagnostics());
    return loaded.value();
  }

  template <typename T>
  T* memory(std::size_t count) {
    return static_cast<T*>(backend_->allocate(count * sizeof(T)).value());
  }

  template <typename Args>
  void launch(const LoadedKernel* kernel, const Args& args, const Shape& shape, Stream stream) {
    const auto result = backend_->launch({kernel, shape.grid, shape.threads, shape.shared_bytes,
                                          &args, sizeof args, shape.programmatic, shape.rank},
                                         stream);
    EXPECT_TRUE(result.ok()) << to_string(result.diagnostics());
  }
  template <typename Args>
  void launch(const LoadedKernel* kernel, const Args& args, const Shape& shape) {
    launch(kernel, args, shape, stream_);
  }

  // Everything queued must run without a report.
  void run() {
    const auto result = backend_->run();
    EXPECT_TRUE(result.ok()) << to_string(result.diagnostics());
  }
  // Runs everything queued; it must fail, with this report.
  std::string report() {
    const auto result = backend_->run();
    EXPECT_FALSE(result.ok());
    return backend_->last_report();
  }

 private:
  std::unique_ptr<EmulatorBackend> backend_;
  Stream stream_{};
  std::string source_;
};

}  // namespace afdep
