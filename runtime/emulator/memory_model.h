// What a load of global memory returns and when a store becomes visible. The scheduler checks
// addresses and picks the order of threads; the model decides everything about values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace afdep::emulator {

// Who accesses memory: unique over a backend's life.
struct ThreadId {
  int rank = 0;
  std::uint64_t launch = 0;  // number of the launch on this backend, from 1
  int block = 0;
  int thread = 0;

  friend bool operator==(const ThreadId&, const ThreadId&) = default;
};

enum class Scope : std::uint8_t {
  kThread,  // an ordinary access: nobody else may rely on its order
  kGpu,     // threads of one rank
  kSystem,  // every rank and the host
};

// A naturally aligned access to memory that exists.
struct Access {
  const ThreadId& thread;
  Scope scope;
  void* address;
  std::uint32_t bytes;
};

// Called by the scheduler, one access at a time. `value` points to access.bytes bytes of the
// thread's own.
class MemoryModel {
 public:
  virtual ~MemoryModel() = default;

  // Ordinary accesses; vectors are no single-copy atomic unit, scalars are.
  virtual void load(const Access& access, void* value) = 0;
  virtual void store(const Access& access, const void* value) = 0;
  // Memory that no kernel writes while this one runs.
  virtual void load_input(const Access& access, void* value) = 0;
  // 16 bytes as one unit, ordered with nothing.
  virtual void load_packet(const Access& access, void* value) = 0;
  virtual void store_packet(const Access& access, const void* value) = 0;
  // Flag words.
  virtual void acquire(const Access& access, void* value) = 0;
  virtual void release(const Access& access, const void* value) = 0;
  // Words that threads share without order.
  virtual void load_relaxed(const Access& access, void* value) = 0;
  virtual void store_relaxed(const Access& access, const void* value) = 0;
  // Takes a word from 0 to 1; true for the one access that did.
  virtual bool claim(const Access& access) = 0;

  // What orders accesses beside the above, told as it happens. `first` is the lowest thread that
  // takes part, `lanes` the others relative to it. A kernel's start orders it after the kernels and
  // copies before it on its stream.
  virtual void warp_joined(const ThreadId& first, std::uint32_t lanes) = 0;
  virtual void block_joined(int rank, std::uint64_t launch, int block) = 0;
  virtual void previous_kernel_awaited(const ThreadId& thread) = 0;
  virtual void kernel_started(int rank, std::uint64_t launch) = 0;
  virtual void kernel_ended(int rank, std::uint64_t launch) = 0;
};

// Sequential consistency: memory is what it looks like, and every access happens at once.
std::unique_ptr<MemoryModel> make_sequential_memory();

}  // namespace afdep::emulator
