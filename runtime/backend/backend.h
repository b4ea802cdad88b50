// A place where kernels run: one CUDA device, or the CPU emulator. The exchange code and the tests
// use nothing else, so the same bodies run on both.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/support/result.h"

namespace afdep {

// A stream, graph or event of the backend that made it; 0 is never one. On CUDA a Stream is a
// CUstream, so a server passes its own.
enum class Stream : std::uintptr_t {};
enum class Graph : std::uintptr_t {};
enum class Event : std::uintptr_t {};

// How SMs divide L1 and shared memory while a kernel runs. An SM changes that only when it is
// empty, and the device honours what a kernel asks for only if it is all of the shared memory, or
// if the CTAs beside each other take equal shares (docs/decisions/0008-one-split.md).
enum class SharedSplit {
  kAny,     // alone on the device
  kNarrow,  // SmLimits::narrow_shared_bytes; every CTA takes KernelImage::cta_shared_bytes
  kWide,    // as much shared memory as there is
};

// What a kernel is compiled from and to. The emulator compiles `source`; CUDA loads `image`, whose
// arch is the device's.
struct KernelImage {
  std::string symbol;
  std::string source_name;  // e.g. "attention_dispatch_b8.cu"; messages show it
  std::string_view source;
  std::span<const std::byte> image;
  SharedSplit split = SharedSplit::kAny;
  std::size_t cta_shared_bytes = 0;  // with kNarrow
};

// A loaded kernel; lives as long as its backend.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;
  [[nodiscard]] virtual std::string_view symbol() const = 0;
  // CTAs of this shape that one SM holds at once, with its registers and shared memory. The
  // emulator says 1.
  [[nodiscard]] virtual int blocks_per_sm(int threads, std::size_t shared_bytes) const = 0;
};

struct Launch {
  const LoadedKernel* kernel = nullptr;
  int grid = 1;
  int threads = 32;
  std::size_t shared_bytes = 0;
  const void* args = nullptr;  // the kernel's one argument struct, copied by launch()
  std::size_t args_bytes = 0;
  bool programmatic = false;  // may become resident before the kernel before it on the stream ends
  int rank = 0;               // world rank, for messages and the emulator's schedule
};

// What one SM holds at once. Registers go to warps in blocks of 256, to each quarter of the SM
// separately.
struct SmLimits {
  int ctas = 0;
  int threads = 0;
  int registers = 0;
  std::int64_t shared_bytes = 0;         // at the widest split
  std::int64_t narrow_shared_bytes = 0;  // at the one that leaves L1 what crowded SMs need; 0: none
  // Taken by each CTA beyond what it asks for.
  std::int64_t reserved_shared_bytes = 0;
};

// Memory that kernels use. Device memory of CUDA; ordinary memory for the emulator.
class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;         // "cuda" or "emulator"
  [[nodiscard]] virtual std::string_view device_name() const = 0;  // e.g. "NVIDIA H200"
  [[nodiscard]] virtual std::string_view arch() const = 0;  // "sm_90a"; the emulator: "emulator"
  [[nodiscard]] virtual int sm_count() const = 0;           // the emulator: 1
  // Nothing if any number of CTAs makes progress together, as in the emulator.
  [[nodiscard]] virtual std::optional<SmLimits> sm_limits() const { return std::nullopt; }

  // Zeroed, 256-byte aligned. Fails with kMemory, saying how many bytes were asked for and how many
  // are free.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  // Zeroed host memory that kernels can write through `device`.
  struct HostMapped {
    void* host = nullptr;
    void* device = nullptr;
  };
  virtual Result<HostMapped> allocate_host_mapped(std::size_t bytes) = 0;
  virtual void free_host_mapped(const HostMapped& memory) = 0;
  // True if `memory` is addressable by kernels of this backend (tensor checks).
  [[nodiscard]] virtual bool owns(const void* memory) const = 0;

  // Blocking copies, ordered after nothing that runs on a non-default stream: synchronize first.
  virtual Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual Result<void> fill(void* memory, std::uint8_t byte, std::size_t bytes) = 0;
  // Ordered on the stream; capturable.
  virtual Result<void> copy_on_stream(void* to, const void* from, std::size_t bytes,
                                      Stream stream) = 0;

  virtual Result<Stream> create_stream() = 0;
  virtual void destroy_stream(Stream stream) = 0;
  // Returns when all work on the stream has ended. A kernel that failed to run is reported here by
  // name.
  virtual Result<void> synchronize(Stream stream) = 0;
  virtual Result<void> synchronize_all() = 0;
  [[nodiscard]] virtual bool is_capturing(Stream stream) const = 0;

  virtual Result<Event> create_event() = 0;
  virtual void destroy_event(Event event) = 0;
  virtual Result<void> record(Event event, Stream stream) = 0;
  virtual Result<void> wait(Event event, Stream stream) = 0;
  // Between two recorded, finished events. The emulator answers in virtual time.
  virtual Result<std::chrono::nanoseconds> elapsed(Event from, Event to) = 0;

  // Loads fully: no later launch loads code lazily, which could wait for a spinning peer.
  virtual Result<const LoadedKernel*> load(const KernelImage& image) = 0;
  // Enqueues; does not block, allocate on the host heap or format text unless it fails.
  virtual Result<void> launch(const Launch& launch, Stream stream) = 0;

  virtual Result<void> begin_capture(Stream stream) = 0;
  virtual Result<Graph> end_capture(Stream stream) = 0;  // instantiated and uploaded
  virtual Result<void> replay(Graph graph, Stream stream) = 0;
  virtual void destroy_graph(Graph graph) = 0;
};

}  // namespace afdep
