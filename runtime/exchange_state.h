// What a Buffer holds. Private to exchange*.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "afdep/abi.h"
#include "runtime/exchange.h"
#include "runtime/residency.h"

namespace afdep {

// A kernel of this rank's role, ready to launch but for its arguments and stream.
struct PreparedKernel {
  Launch launch;  // kernel == nullptr: the bucket has none
};

struct PreparedBucket {
  int tokens = 0;
  std::int64_t receive_rows = 0;
  bool programmatic = false;
  PreparedKernel first;   // dispatch or receive
  PreparedKernel second;  // collect or reply
  PreparedKernel view;    // collect_view
  // Epilogues, where the plan keeps them apart: the same call launches them.
  PreparedKernel behind_first;   // expand, or idle_expand
  PreparedKernel behind_second;  // reduce, or idle_reduce
};

struct Buffer::State {
  enum class Health : std::uint8_t { kUsable, kTimedOut, kClosed };

  State(Communicator& communicator, const bundle::Manifest& its_manifest);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Creation, in this order (exchange_create.cpp).
  Result<void> join(const BufferOptions& options);
  Result<void> allocate(const BufferOptions& options);
  Result<void> start_generations(std::uint32_t before_first);
  Result<void> load_kernels(const bundle::Bundle& bundle, const Residency& residency);
  void release();

  // Checks shared by the operations (exchange.cpp).
  Result<void> usable(bundle::Role wanted, const char* call);
  Result<const PreparedBucket*> find_bucket(int tokens, const char* call) const;
  Result<void> may_open(const char* call) const;
  Result<void> same_capture(Stream stream, const char* call) const;
  Result<bool> capturing(Stream stream, const char* call) const;
  template <typename Args>
  Result<void> enqueue(const PreparedKernel& kernel, const PreparedKernel& epilogue,
                       const Args& args, Stream stream, Event after, Event done);
  Result<void> read_faults();

  Communicator& comm;
  Backend& backend;
  bundle::Manifest manifest;
  int rank = 0;  // world
  bundle::Role role = bundle::Role::kAttention;
  int index = 0;  // within the role
  std::uint64_t id = 0;

  Window window;
  bool has_window = false;
  void* memory = nullptr;  // control words, workspace, receive storage
  Backend::HostMapped faults;
  std::optional<ReceiveStorage> storage;  // for the largest bucket
  CommonArgs common{};
  std::int64_t timeout_ms = 0;
  std::vector<PreparedBucket> buckets;

  bool ready = false;  // every rank has joined
  Health health = Health::kUsable;
  std::atomic<bool> aborted = false;

  // The exchange that is open, or the last one.
  bool open = false;
  bool open_in_capture = false;
  std::uint64_t exchange = 0;  // its number; 0: none yet
  const PreparedBucket* bucket = nullptr;
  std::int64_t tokens = 0;        // attention: T
  std::int64_t receive_rows = 0;  // FFN: rows handed out
};

}  // namespace afdep
