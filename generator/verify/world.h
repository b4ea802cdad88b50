// All ranks of a bundle in this process, over any backend: the emulator for verification, one GPU
// for benchmarks.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "generator/verify/exchange_case.h"
#include "runtime/backend/backend.h"
#include "runtime/bundle/bundle.h"
#include "runtime/exchange.h"
#include "runtime/support/result.h"

namespace afdep::verify {

// Device memory between two guards of poison, which nothing may touch.
struct Guarded {
  void* allocation = nullptr;
  std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
};

// Device tensors of one exchange: of each source and of each worker. Several slots let exchanges
// follow each other without waiting for the host to look.
struct Slot {
  struct Source {
    Guarded x, ids, weights, out;
    Tensor collected;  // what source_collect returned
  };
  struct Worker {
    Guarded rows, row_weights, ends, counts, replies;
  };
  int bucket = 0;
  std::vector<int> tokens;  // by source, as loaded
  bool view = false;        // collect without `out`
  std::vector<Source> sources;
  std::vector<Worker> workers;
  std::vector<void*> allocations;  // all of the above
};

struct WorldOptions {
  std::optional<std::chrono::milliseconds> device_timeout = std::nullopt;
  std::optional<std::uint32_t> generation_before_first = std::nullopt;
};

// How much was compared, over the life of a world.
struct Tally {
  std::int64_t rows = 0;
  std::int64_t values = 0;
};

class World {
 public:
  // The backend must outlive the world; the bundle is not needed afterwards.
  static Result<std::unique_ptr<World>> create(Backend& backend, const bundle::Bundle& bundle,
                                               const WorldOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] int receive_rows(int bucket) const;
  [[nodiscard]] const bundle::Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const Tally& tally() const { return tally_; }
  [[nodiscard]] Backend& backend() const { return backend_; }
  [[nodiscard]] Stream stream(int world_rank) const;
  // The registered window of a rank; window_bytes of the manifest.
  [[nodiscard]] std::uint8_t* window(int world_rank) const;
  [[nodiscard]] Buffer& buffer(int world_rank);
  [[nodiscard]] int ranks() const { return manifest_.ranks(); }

  // Valid as long as the world, unless freed; its memory holds nothing until load().
  Result<Slot*> add_slot(int bucket);

  // Frees it; it must be idle.
  void free_slot(const Slot* slot);

  // Fills the slot's inputs and replies and poisons every output. The slot must be idle.
  Result<void> load(Slot& slot, const ExchangeCase& exchange);

  // Enqueues the two operations of one rank, or of all ranks in an order that `random` picks.
  Result<void> enqueue(Slot& slot, int world_rank);
  Result<void> enqueue_all(Slot& slot, Random& random);

  // One graph of each rank, of `exchanges` exchanges of the slot as loaded; by world rank.
  Result<std::vector<Graph>> capture(Slot& slot, int exchanges);

  // Everything that differs from the case, at most ten lines; empty if nothing does. The slot's
  // kernels must have ended.
  Result<std::vector<std::string>> compare(const Slot& slot, const ExchangeCase& exchange);

  // check() of every rank; the diagnostics of all.
  Result<void> check_all();
  Result<void> close_all();

 private:
  World(Backend& backend, const bundle::Manifest& manifest);
  Result<void> allocate(Slot& slot, Guarded& memory, std::int64_t bytes);
  Result<void> allocate_tensors(Slot& slot);

  Backend& backend_;
  bundle::Manifest manifest_;
  Shape shape_;
  Tally tally_;
  std::vector<std::unique_ptr<Communicator>> loopback_;       // by world rank
  std::vector<std::unique_ptr<Communicator>> communicators_;  // likewise: watch over the above
  std::vector<std::uint8_t*> windows_;                        // likewise
  std::vector<Stream> streams_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<Slot>> slots_;
};

}  // namespace afdep::verify
