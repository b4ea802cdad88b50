// The CPU as a backend: all ranks' kernels in this process, interleaved by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/emulator/device_memory.h"
#include "runtime/emulator/ledger.h"
#include "runtime/emulator/scheduler.h"

namespace afdep {

struct EmulatorOptions {
  emulator::ScheduleOptions schedule;
};

// Work runs when somebody synchronizes: then all streams run, so that peers make progress, until
// the awaited stream is empty. Queue the work of all ranks before that: a rank with nothing queued
// counts as one that never arrives. Safe to use from several threads; one of them at a time runs
// kernels.
//
// A failure of synchronize(), synchronize_all() or run() has code kVerification and says which
// rank, kernel, block and thread did what. It empties every stream; memory, kernels, graphs and
// streams stay usable.
class EmulatorBackend final : public Backend {
 public:
  static Result<std::unique_ptr<EmulatorBackend>> create(const EmulatorOptions& options);
  ~EmulatorBackend() override;

  // ---- Backend ----
  [[nodiscard]] std::string_view name() const override { return "emulator"; }
  [[nodiscard]] std::string_view device_name() const override { return "CPU emulator"; }
  [[nodiscard]] std::string_view arch() const override { return "emulator"; }
  [[nodiscard]] int sm_count() const override { return 1; }

  Result<void*> allocate(std::size_t bytes) override;
  void free(void* memory) override;
  Result<HostMapped> allocate_host_mapped(std::size_t bytes) override;
  void free_host_mapped(const HostMapped& memory) override;
  [[nodiscard]] bool owns(const void* memory) const override;

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override;
  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override;
  Result<void> fill(void* memory, std::uint8_t byte, std::size_t bytes) override;
  Result<void> copy_on_stream(void* to, const void* from, std::size_t bytes,
                              Stream stream) override;

  Result<Stream> create_stream() override;
  void destroy_stream(Stream stream) override;
  Result<void> synchronize(Stream stream) override;
  Result<void> synchronize_all() override;
  [[nodiscard]] bool is_capturing(Stream stream) const override;

  Result<Event> create_event() override;
  void destroy_event(Event event) override;
  Result<void> record(Event event, Stream stream) override;
  Result<void> wait(Event event, Stream stream) override;
  Result<std::chrono::nanoseconds> elapsed(Event from, Event to) override;

  Result<const LoadedKernel*> load(const KernelImage& image) override;
  Result<void> launch(const Launch& launch, Stream stream) override;

  Result<void> begin_capture(Stream stream) override;
  Result<Graph> end_capture(Stream stream) override;
  Result<void> replay(Graph graph, Stream stream) override;
  void destroy_graph(Graph graph) override;

  // ---- of the emulator alone ----
  // Runs everything that is queued: synchronize_all() under the name of what it does.
  Result<void> run() { return synchronize_all(); }

  // A new schedule from here on; the counts start again.
  void set_seed(std::uint64_t seed);
  // See ScheduleOptions::stop_on_stall.
  void set_stop_on_stall(bool stop);
  // Nanoseconds on the clock of device code. It stands still while any thread can run.
  [[nodiscard]] std::uint64_t virtual_time() const;
  [[nodiscard]] emulator::ScheduleCounts counts() const;
  // The newest failure of a run, as printed; empty if none failed.
  [[nodiscard]] std::string last_report() const;

  // Names an allocation and says whose it is: for messages and the ledger. `memory` is what
  // allocate() returned.
  Result<void> describe(const void* memory, std::string name, int owner);
  // From now on a store of `rank` outside `ranges` is a failure ("nothing written outside the
  // regions that the plan gives a rank").
  void restrict_stores(int rank, std::vector<emulator::WritableRange> ranges);
  // The same for stores into memory that describe() gave to another rank, and for those alone.
  void restrict_foreign_stores(int rank, std::vector<emulator::WritableRange> ranges);
  void allow_all_stores();

  [[nodiscard]] emulator::Ledger ledger() const;
  // Messages on the longest chain since clear_ledger() in which each was sent after the one before
  // it was seen: serialized one-way hops.
  // Asking ends the count, which slows memory down.
  [[nodiscard]] int hops();
  void clear_ledger();

  // See Injection; in force until it happens, or another takes its place.
  void inject(const emulator::Injection& injection);
  [[nodiscard]] bool injected() const;

 private:
  class State;
  explicit EmulatorBackend(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace afdep
