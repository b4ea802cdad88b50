#include "runtime/emulator/emulator_backend.h"

#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "runtime/emulator/compiler.h"

namespace afdep {
namespace {

using emulator::CompiledKernel;
using emulator::EventState;
using emulator::Operation;
using emulator::StreamQueue;

constexpr int kMaxThreads = 1024;  // of a block, as on every GPU this project knows
constexpr std::size_t kMaxSharedBytes = 227 * 1024;

class EmulatedKernel final : public LoadedKernel {
 public:
  EmulatedKernel(std::string symbol, const CompiledKernel* code)
      : symbol_(std::make_shared<const std::string>(std::move(symbol))), code_(code) {}

  [[nodiscard]] std::string_view symbol() const override { return *symbol_; }
  [[nodiscard]] int blocks_per_sm(int /*threads*/, std::size_t /*shared_bytes*/) const override {
    return 1;
  }
  [[nodiscard]] const std::shared_ptr<const std::string>& shared_symbol() const { return symbol_; }
  [[nodiscard]] const CompiledKernel* code() const { return code_; }

 private:
  std::shared_ptr<const std::string> symbol_;
  const CompiledKernel* code_;
};

Failure unknown(std::string_view call, std::string_view what, std::uintptr_t handle) {
  return Failure(
      ErrorCode::kCallOrder,
      fmt::format("{}: {} {} is not one of this emulator, or was destroyed", call, what, handle));
}

Failure not_owned(std::string_view call, const void* memory, std::size_t bytes) {
  return Failure(ErrorCode::kMemory,
                 fmt::format("{}: {} bytes at {} are not inside one allocation of the emulator",
                             call, bytes, memory));
}

}  // namespace

class EmulatorBackend::State {
 public:
  explicit State(const EmulatorOptions& options) : scheduler(memory, options.schedule) {}

  struct StreamState {
    StreamQueue* queue = nullptr;
    bool capturing = false;
    std::vector<Operation> captured;
  };

  StreamState* find(Stream stream) {
    const auto found = streams.find(static_cast<std::uintptr_t>(stream));
    return found == streams.end() ? nullptr : &found->second;
  }

  std::shared_ptr<EventState>* find(Event event) {
    const auto found = events.find(static_cast<std::uintptr_t>(event));
    return found == events.end() ? nullptr : &found->second;
  }

  // Onto the stream, or into the graph that it captures.
  void enqueue(StreamState& stream, Operation operation) {
    if (stream.capturing) {
      stream.captured.push_back(std::move(operation));
    } else {
      append(stream, std::move(operation));
    }
  }

  // Numbers recordings as they are queued: a wait is for the newest recording before it.
  void append(StreamState& stream, Operation operation) {
    operation.host_order = scheduler.model().host_order();
    if (operation.kind == Operation::Kind::kRecord) operation.recording = ++operation.event->issued;
    if (operation.kind == Operation::Kind::kWait) operation.recording = operation.event->issued;
    stream.queue->queue.push_back({std::move(operation), nullptr, false});
  }

  Result<void> run(StreamQueue* target) {
    Result<void> result = scheduler.run(target);
    if (!result) report = to_string(result.diagnostics());
    return result;
  }

  mutable std::mutex mutex;
  emulator::DeviceMemory memory;
  emulator::Scheduler scheduler;
  std::unordered_map<std::uintptr_t, StreamState> streams;
  std::unordered_map<std::uintptr_t, std::shared_ptr<EventState>> events;
  std::unordered_map<std::uintptr_t, std::vector<Operation>> graphs;
  std::vector<std::unique_ptr<EmulatedKernel>> kernels;
  std::uintptr_t handles = 0;
  std::string report;
};

EmulatorBackend::EmulatorBackend(std::unique_ptr<State> state) : state_(std::move(state)) {}
EmulatorBackend::~EmulatorBackend() = default;

Result<std::unique_ptr<EmulatorBackend>> EmulatorBackend::create(const EmulatorOptions& options) {
  if (options.schedule.resident_blocks < 1) {
    return Failure(ErrorCode::kLaunch, fmt::format("resident_blocks is {}, must be at least 1",
                                                   options.schedule.resident_blocks));
  }
  if (options.schedule.fruitless_accesses < 1) {
    return Failure(ErrorCode::kLaunch, "fruitless_accesses is 0, must be at least 1");
  }
  return std::unique_ptr<EmulatorBackend>(new EmulatorBackend(std::make_unique<State>(options)));
}

// ---- memory -------------------------------------------------------------------------------------

Result<void*> EmulatorBackend::allocate(std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  return state_->memory.allocate(bytes);
}

void EmulatorBackend::free(void* memory) {
  if (memory == nullptr) return;
  const std::scoped_lock lock(state_->mutex);
  if (const emulator::Allocation* const freed = state_->memory.find(memory, 1)) {
    state_->scheduler.host_wrote(memory, freed->bytes);
  }
  AFDEP_CHECK(state_->memory.free(memory),
              fmt::format("free({}): not an allocation of the emulator", memory));
}

Result<Backend::HostMapped> EmulatorBackend::allocate_host_mapped(std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  auto memory = state_->memory.allocate_host_mapped(bytes);
  if (!memory) return memory.failure();
  return HostMapped{*memory, *memory};
}

void EmulatorBackend::free_host_mapped(const HostMapped& memory) { free(memory.device); }

bool EmulatorBackend::owns(const void* memory) const {
  const std::scoped_lock lock(state_->mutex);
  return state_->memory.find(memory, 1) != nullptr;
}

Result<void> EmulatorBackend::copy_to_device(void* to, const void* from, std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  if (bytes == 0) return {};
  if (state_->memory.find(to, bytes) == nullptr) return not_owned("copy_to_device", to, bytes);
  std::memmove(to, from, bytes);
  state_->scheduler.host_wrote(to, bytes);
  return {};
}

Result<void> EmulatorBackend::copy_to_host(void* to, const void* from, std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  if (bytes == 0) return {};
  if (state_->memory.find(from, bytes) == nullptr) return not_owned("copy_to_host", from, bytes);
  std::memmove(to, from, bytes);
  return {};
}

Result<void> EmulatorBackend::fill(void* memory, std::uint8_t byte, std::size_t bytes) {
  const std::scoped_lock lock(state_->mutex);
  if (bytes == 0) return {};
  if (state_->memory.find(memory, bytes) == nullptr) return not_owned("fill", memory, bytes);
  std::memset(memory, byte, bytes);
  state_->scheduler.host_wrote(memory, bytes);
  return {};
}

Result<void> EmulatorBackend::copy_on_stream(void* to, const void* from, std::size_t bytes,
                                             Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) {
    return unknown("copy_on_stream", "stream", static_cast<std::uintptr_t>(stream));
  }
  if (bytes == 0) return {};
  // One side may be host memory, which has no list.
  if (state_->memory.find(to, bytes) == nullptr && state_->memory.find(from, bytes) == nullptr) {
    return not_owned("copy_on_stream", to, bytes);
  }
  Operation operation;
  operation.kind = Operation::Kind::kCopy;
  operation.to = to;
  operation.from = from;
  operation.bytes = bytes;
  state_->enqueue(*on, std::move(operation));
  return {};
}

// ---- streams and events -------------------------------------------------------------------------

Result<Stream> EmulatorBackend::create_stream() {
  const std::scoped_lock lock(state_->mutex);
  const std::uintptr_t handle = ++state_->handles;
  state_->streams[handle].queue = state_->scheduler.add_stream();
  return Stream{handle};
}

void EmulatorBackend::destroy_stream(Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  AFDEP_CHECK(on != nullptr, fmt::format("destroy_stream({}): no such stream",
                                         static_cast<std::uintptr_t>(stream)));
  // As on CUDA, what was queued still runs; its failure stays in last_report().
  if (!on->queue->queue.empty()) static_cast<void>(state_->run(on->queue).ok());
  state_->scheduler.remove_stream(on->queue);
  state_->streams.erase(static_cast<std::uintptr_t>(stream));
}

Result<void> EmulatorBackend::synchronize(Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("synchronize", "stream", static_cast<std::uintptr_t>(stream));
  if (on->capturing) {
    return Failure(ErrorCode::kCallOrder, "synchronize: the stream is capturing a graph",
                   "end the capture first");
  }
  return state_->run(on->queue);
}

Result<void> EmulatorBackend::synchronize_all() {
  const std::scoped_lock lock(state_->mutex);
  return state_->run(nullptr);
}

bool EmulatorBackend::is_capturing(Stream stream) const {
  const std::scoped_lock lock(state_->mutex);
  const State::StreamState* const on = state_->find(stream);
  return on != nullptr && on->capturing;
}

Result<Event> EmulatorBackend::create_event() {
  const std::scoped_lock lock(state_->mutex);
  const std::uintptr_t handle = ++state_->handles;
  state_->events[handle] = std::make_shared<EventState>();
  return Event{handle};
}

void EmulatorBackend::destroy_event(Event event) {
  const std::scoped_lock lock(state_->mutex);
  AFDEP_CHECK(state_->events.erase(static_cast<std::uintptr_t>(event)) == 1,
              fmt::format("destroy_event({}): no such event", static_cast<std::uintptr_t>(event)));
}

Result<void> EmulatorBackend::record(Event event, Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("record", "stream", static_cast<std::uintptr_t>(stream));
  const auto* const state = state_->find(event);
  if (state == nullptr) return unknown("record", "event", static_cast<std::uintptr_t>(event));
  Operation operation;
  operation.kind = Operation::Kind::kRecord;
  operation.event = *state;
  state_->enqueue(*on, std::move(operation));
  return {};
}

Result<void> EmulatorBackend::wait(Event event, Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("wait", "stream", static_cast<std::uintptr_t>(stream));
  const auto* const state = state_->find(event);
  if (state == nullptr) return unknown("wait", "event", static_cast<std::uintptr_t>(event));
  Operation operation;
  operation.kind = Operation::Kind::kWait;
  operation.event = *state;
  state_->enqueue(*on, std::move(operation));
  return {};
}

Result<std::chrono::nanoseconds> EmulatorBackend::elapsed(Event from, Event to) {
  const std::scoped_lock lock(state_->mutex);
  const auto time = [this](Event event) -> Result<std::uint64_t> {
    const auto* const found = state_->find(event);
    if (found == nullptr) return unknown("elapsed", "event", static_cast<std::uintptr_t>(event));
    const EventState& state = **found;
    if (state.issued == 0 || state.completed < state.issued) {
      return Failure(ErrorCode::kCallOrder,
                     fmt::format("elapsed: event {} {}", static_cast<std::uintptr_t>(event),
                                 state.issued == 0 ? "was never recorded" : "has not happened yet"),
                     "record both events and synchronize first");
    }
    return state.time_ns;
  };
  auto begin = time(from);
  if (!begin) return begin.failure();
  auto end = time(to);
  if (!end) return end.failure();
  return std::chrono::nanoseconds(static_cast<std::int64_t>(*end) -
                                  static_cast<std::int64_t>(*begin));
}

// ---- kernels and graphs -------------------------------------------------------------------------

Result<const LoadedKernel*> EmulatorBackend::load(const KernelImage& image) {
  auto code = emulator::compile(image.source_name, image.symbol, image.source);
  if (!code) return code.failure();
  const std::scoped_lock lock(state_->mutex);
  state_->kernels.push_back(std::make_unique<EmulatedKernel>(image.symbol, *code));
  return state_->kernels.back().get();
}

Result<void> EmulatorBackend::launch(const Launch& launch, Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("launch", "stream", static_cast<std::uintptr_t>(stream));
  const auto* const kernel = dynamic_cast<const EmulatedKernel*>(launch.kernel);
  if (kernel == nullptr) {
    return Failure(ErrorCode::kCallOrder, "launch: the kernel was not loaded by the emulator");
  }
  const auto refuse = [&](std::string why) {
    return Failure(ErrorCode::kLaunch,
                   fmt::format("launch of {} on rank {}: {}", kernel->symbol(), launch.rank, why));
  };
  if (launch.grid < 1) return refuse(fmt::format("grid is {}, must be at least 1", launch.grid));
  if (launch.threads < 1 || launch.threads > kMaxThreads) {
    return refuse(fmt::format("threads is {}, must be 1 to {}", launch.threads, kMaxThreads));
  }
  if (launch.shared_bytes > kMaxSharedBytes) {
    return refuse(fmt::format("shared_bytes is {}, must be at most {}", launch.shared_bytes,
                              kMaxSharedBytes));
  }
  if (launch.args == nullptr || launch.args_bytes != kernel->code()->args_bytes) {
    return refuse(fmt::format("args_bytes is {}, the kernel's argument struct has {}",
                              launch.args_bytes, kernel->code()->args_bytes));
  }
  Operation operation;
  operation.kind = Operation::Kind::kKernel;
  operation.launch.code = kernel->code();
  operation.launch.symbol = kernel->shared_symbol();
  operation.launch.grid = launch.grid;
  operation.launch.threads = launch.threads;
  operation.launch.shared_bytes = launch.shared_bytes;
  const auto* const args = static_cast<const std::byte*>(launch.args);
  operation.launch.args.assign(args, args + launch.args_bytes);
  operation.launch.programmatic = launch.programmatic;
  operation.launch.rank = launch.rank;
  state_->enqueue(*on, std::move(operation));
  return {};
}

Result<void> EmulatorBackend::begin_capture(Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("begin_capture", "stream", static_cast<std::uintptr_t>(stream));
  if (on->capturing) {
    return Failure(ErrorCode::kCallOrder, "begin_capture: the stream is capturing already");
  }
  on->capturing = true;
  on->captured.clear();
  return {};
}

Result<Graph> EmulatorBackend::end_capture(Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("end_capture", "stream", static_cast<std::uintptr_t>(stream));
  if (!on->capturing) {
    return Failure(ErrorCode::kCallOrder, "end_capture: the stream is not capturing",
                   "call begin_capture first");
  }
  on->capturing = false;
  const std::uintptr_t handle = ++state_->handles;
  state_->graphs[handle] = std::exchange(on->captured, {});
  return Graph{handle};
}

Result<void> EmulatorBackend::replay(Graph graph, Stream stream) {
  const std::scoped_lock lock(state_->mutex);
  State::StreamState* const on = state_->find(stream);
  if (on == nullptr) return unknown("replay", "stream", static_cast<std::uintptr_t>(stream));
  const auto found = state_->graphs.find(static_cast<std::uintptr_t>(graph));
  if (found == state_->graphs.end()) {
    return unknown("replay", "graph", static_cast<std::uintptr_t>(graph));
  }
  if (on->capturing) {
    return Failure(ErrorCode::kCallOrder, "replay: the stream is capturing a graph",
                   "end the capture first");
  }
  // A graph begins when everything before it on the stream has ended, and ends before anything
  // after it begins.
  state_->append(*on, Operation{});
  for (const Operation& operation : found->second) state_->append(*on, operation);
  state_->append(*on, Operation{});
  return {};
}

void EmulatorBackend::destroy_graph(Graph graph) {
  const std::scoped_lock lock(state_->mutex);
  AFDEP_CHECK(state_->graphs.erase(static_cast<std::uintptr_t>(graph)) == 1,
              fmt::format("destroy_graph({}): no such graph", static_cast<std::uintptr_t>(graph)));
}

// ---- of the emulator alone ----------------------------------------------------------------------

void EmulatorBackend::set_seed(std::uint64_t seed) {
  const std::scoped_lock lock(state_->mutex);
  state_->scheduler.restart(seed);
}

void EmulatorBackend::set_stop_on_stall(bool stop) {
  const std::scoped_lock lock(state_->mutex);
  state_->scheduler.set_stop_on_stall(stop);
}

std::uint64_t EmulatorBackend::virtual_time() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->scheduler.now_ns();
}

emulator::ScheduleCounts EmulatorBackend::counts() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->scheduler.counts();
}

std::string EmulatorBackend::last_report() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->report;
}

Result<void> EmulatorBackend::describe(const void* memory, std::string name, int owner) {
  const std::scoped_lock lock(state_->mutex);
  if (!state_->memory.describe(memory, std::move(name), owner)) {
    return Failure(ErrorCode::kMemory,
                   fmt::format("describe: {} is not the start of an allocation", memory));
  }
  return {};
}

void EmulatorBackend::restrict_stores(int rank, std::vector<emulator::WritableRange> ranges) {
  const std::scoped_lock lock(state_->mutex);
  state_->memory.restrict_stores(rank, std::move(ranges));
}

void EmulatorBackend::restrict_foreign_stores(int rank,
                                              std::vector<emulator::WritableRange> ranges) {
  const std::scoped_lock lock(state_->mutex);
  state_->memory.restrict_foreign_stores(rank, std::move(ranges));
}

void EmulatorBackend::allow_all_stores() {
  const std::scoped_lock lock(state_->mutex);
  state_->memory.allow_all_stores();
}

emulator::Ledger EmulatorBackend::ledger() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->scheduler.ledger();
}

void EmulatorBackend::clear_ledger() {
  const std::scoped_lock lock(state_->mutex);
  state_->scheduler.clear_ledger();
}

int EmulatorBackend::hops() {
  const std::scoped_lock lock(state_->mutex);
  state_->scheduler.stop_counting_hops();
  return static_cast<int>(state_->scheduler.longest_chain());
}

void EmulatorBackend::inject(const emulator::Injection& injection) {
  const std::scoped_lock lock(state_->mutex);
  state_->scheduler.inject(injection);
}

bool EmulatorBackend::injected() const {
  const std::scoped_lock lock(state_->mutex);
  return state_->scheduler.injected();
}

}  // namespace afdep
