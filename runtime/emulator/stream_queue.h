// Work recorded on a stream, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/emulator/compiler.h"
#include "runtime/emulator/exhaustive.h"

namespace afdep::emulator {

struct KernelRun;

// A recording issued as number n has happened once `completed` >= n.
struct EventState {
  std::uint64_t issued = 0;
  std::uint64_t completed = 0;
  std::uint64_t time_ns = 0;  // virtual time of the newest completed recording
};

struct KernelLaunch {
  const CompiledKernel* code = nullptr;
  std::shared_ptr<const std::string> symbol;
  int grid = 1;
  int threads = 32;
  std::size_t shared_bytes = 0;
  std::vector<std::byte> args;
  bool programmatic = false;
  int rank = 0;
};

// What a graph holds and a stream queues. A fence orders everything after it behind everything
// before it.
struct Operation {
  enum class Kind : std::uint8_t { kKernel, kCopy, kRecord, kWait, kFence };

  Kind kind = Kind::kFence;
  KernelLaunch launch;                // kKernel
  void* to = nullptr;                 // kCopy
  const void* from = nullptr;         // kCopy
  std::size_t bytes = 0;              // kCopy
  std::shared_ptr<EventState> event;  // kRecord and kWait
  std::uint64_t recording = 0;        // kRecord and kWait: which recording of the event
  std::uint64_t host_order = 0;       // MemoryModel::host_order() when this was queued
};

struct QueuedOperation {
  Operation operation;
  std::unique_ptr<KernelRun> run;  // of a kernel that has started
  bool done = false;
};

struct StreamQueue {
  StreamQueue();
  ~StreamQueue();
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;

  std::uint64_t number = 0;  // of the stream, for messages
  std::deque<QueuedOperation> queue;
  std::uint64_t launches = 0;  // kernels started
  std::uint32_t hops = 0;      // of the kernels that have ended
  Clock clock;                 // of an exhaustive exploration: before everything that has ended
};

}  // namespace afdep::emulator
