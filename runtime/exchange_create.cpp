// Creating and closing a buffer: everything that may allocate, load or talk to other ranks.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "afdep/generation.h"
#include "runtime/exchange_state.h"

namespace afdep {
namespace {

constexpr std::int64_t kBlockAlignment = 256;

std::int64_t align_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint64_t next_buffer_id() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

Result<void> check_options(const BufferOptions& options, const Communicator& communicator,
                           const bundle::Manifest& manifest) {
  if (options.stream != Stream{} && communicator.backend().is_capturing(options.stream)) {
    return Failure(
        ErrorCode::kInCapture, "Buffer::create: the stream is capturing a graph",
        "create buffers before the capture: creation allocates, loads and talks to peers");
  }
  if (communicator.size() != manifest.ranks()) {
    return Failure(
        ErrorCode::kRanksDisagree,
        fmt::format(
            "Buffer::create: the communicator has {} ranks, the bundle {} is for {} ({}A{}F)",
            communicator.size(), manifest.name, manifest.ranks(), manifest.attention_ranks,
            manifest.ffn_ranks),
        "use a bundle whose topology matches the group");
  }
  if (options.device_timeout &&
      (options.device_timeout->count() < 1 || options.device_timeout->count() > 600'000)) {
    return Failure(ErrorCode::kTimeouts,
                   fmt::format("Buffer::create: device_timeout = {} ms is not in [1, 600000]",
                               options.device_timeout->count()));
  }
  if (options.generation_before_first && (*options.generation_before_first == 0 ||
                                          *options.generation_before_first > kLastGeneration)) {
    return Failure(ErrorCode::kCallOrder,
                   fmt::format("Buffer::create: generation_before_first = {} is not in [1, {}]",
                               *options.generation_before_first, kLastGeneration));
  }
  return {};
}

}  // namespace

Buffer::State::State(Communicator& communicator, const bundle::Manifest& its_manifest)
    : comm(communicator),
      backend(communicator.backend()),
      manifest(its_manifest),
      rank(communicator.rank()),
      role(manifest.role_of(rank)),
      index(manifest.index_of(rank)),
      id(next_buffer_id()) {}

Buffer::State::~State() { release(); }

Result<void> Buffer::State::join(const BufferOptions& options) {
  const Field fields[] = {
      {"spec digest", manifest.spec_digest},
      {"afdep version", manifest.afdep_version},
      {"bundle format", std::to_string(manifest.format_version)},
      {"ABI version", std::to_string(manifest.abi_version)},
      {"NVRTC version", manifest.nvrtc_version},
      {"backend", std::string(backend.name())},
      {"generation before the first",
       std::to_string(options.generation_before_first.value_or(kGenerationBeforeFirst))}};
  Result<Window> registered =
      comm.register_window(static_cast<std::size_t>(manifest.window_bytes), fields);
  if (!registered.ok()) return registered.failure();
  window = std::move(*registered);
  has_window = true;
  return {};
}

Result<void> Buffer::State::allocate(const BufferOptions& options) {
  const bundle::RoleLayout& layout = manifest.layout(role);
  std::int64_t end = 0;
  const auto reserve = [&end](std::int64_t bytes) {
    return std::exchange(end, end + align_up(bytes, kBlockAlignment));
  };
  const std::int64_t control_at = reserve(sizeof(Control));
  const std::int64_t workspace_at = reserve(layout.workspace_bytes);
  const bool stores = role == bundle::Role::kFfn && options.receive_storage;
  std::int64_t rows = 0;
  for (const bundle::Bucket& each : manifest.buckets) rows = std::max(rows, each.receive_rows);
  const std::int64_t experts = manifest.local_experts();
  const std::int64_t rows_at = reserve(stores ? rows * manifest.row_bytes : 0);
  const std::int64_t weights_at = reserve(stores ? rows * 4 : 0);
  const std::int64_t ends_at = reserve(stores ? experts * 4 : 0);
  const std::int64_t counts_at = reserve(stores ? experts * 4 : 0);

  Result<void*> allocated = backend.allocate(static_cast<std::size_t>(end));
  if (!allocated.ok()) return allocated.failure();
  memory = *allocated;
  Result<Backend::HostMapped> mapped = backend.allocate_host_mapped(sizeof(Faults));
  if (!mapped.ok()) return mapped.failure();
  faults = *mapped;

  auto* const base = static_cast<std::uint8_t*>(memory);
  if (stores) {
    storage = ReceiveStorage{.rows = matrix(base + rows_at, DType::kBf16, rows, manifest.hidden),
                             .row_weights = vector(base + weights_at, DType::kFloat32, rows),
                             .ends = vector(base + ends_at, DType::kInt32, experts),
                             .counts = vector(base + counts_at, DType::kInt32, experts)};
  }
  timeout_ms =
      options.device_timeout ? options.device_timeout->count() : manifest.device_timeout_ms;
  common.control = reinterpret_cast<Control*>(base + control_at);
  common.faults = static_cast<Faults*>(faults.device);
  common.window = window.address[static_cast<std::size_t>(rank)];
  common.workspace = base + workspace_at;
  common.timeout_ns = static_cast<std::uint64_t>(timeout_ms) * 1'000'000;
  common.index = static_cast<std::uint32_t>(index);
  const bool attention = role == bundle::Role::kAttention;
  const bundle::Role peers = attention ? bundle::Role::kFfn : bundle::Role::kAttention;
  const int count = attention ? manifest.ffn_ranks : manifest.attention_ranks;
  for (int i = 0; i < count; ++i) {
    common.peer[i] = window.address[static_cast<std::size_t>(manifest.world_rank(peers, i))];
  }
  for (int i = 0; i < manifest.ranks() - count; ++i) {
    common.peer[count + i] = window.address[static_cast<std::size_t>(manifest.world_rank(role, i))];
  }
  return {};
}

Result<void> Buffer::State::start_generations(std::uint32_t before_first) {
  const Control control{.started = before_first,
                        .finished = before_first,
                        .abort = 0,
                        .route_claimed = 0,
                        .units_taken = 0};
  AFDEP_RETURN_IF_FAILED(backend.copy_to_device(common.control, &control, sizeof(control)));
  // Done words in this rank's window, as if every peer had finished the generation before the
  // first.
  for (const bundle::Region& region : manifest.layout(role).window) {
    if (!region.done_words) continue;
    const std::vector<std::uint32_t> words(static_cast<std::size_t>(region.bytes() / 4),
                                           before_first);
    AFDEP_RETURN_IF_FAILED(
        backend.copy_to_device(common.window + region.offset, words.data(), words.size() * 4));
  }
  return {};
}

Result<void> Buffer::State::load_kernels(const bundle::Bundle& bundle, const Residency& residency) {
  const std::string arch(backend.arch());
  const bool compiles = arch == "emulator";  // from the sources
  const auto alike = static_cast<std::size_t>(residency.cta_shared_bytes.value_or(0));
  for (const bundle::Bucket& described : manifest.buckets) {
    PreparedBucket prepared;
    prepared.tokens = described.tokens;
    prepared.receive_rows = described.receive_rows;
    prepared.programmatic = residency.programmatic[buckets.size()];
    for (const bundle::Kernel& kernel : described.kernels) {
      if (kernel.role != role) continue;
      const KernelImage image{
          .symbol = kernel.symbol,
          .source_name = kernel.source,
          .source = bundle.source(kernel),
          .image = bundle.image(kernel, arch),
          .split = residency.cta_shared_bytes ? SharedSplit::kNarrow : SharedSplit::kWide,
          .cta_shared_bytes = alike};
      if (!compiles && image.image.empty()) {
        std::string have;
        for (const std::string& other : bundle.arches()) have += (have.empty() ? "" : ", ") + other;
        return Failure(
            ErrorCode::kArch,
            fmt::format("bundle {} holds no kernel {} for {} ({}); it is compiled for: {}",
                        manifest.name, kernel.symbol, arch, backend.device_name(),
                        have.empty() ? "nothing" : have),
            fmt::format("generate it again with --arch {}", arch));
      }
      Result<const LoadedKernel*> loaded = backend.load(image);
      if (!loaded.ok()) return loaded.failure();
      const Launch launch{
          .kernel = *loaded,
          .grid = kernel.grid,
          .threads = kernel.threads,
          .shared_bytes = std::max(static_cast<std::size_t>(kernel.shared_bytes), alike),
          .programmatic = prepared.programmatic,
          .rank = rank};
      switch (kernel.operation) {
        case bundle::Operation::kDispatch:
        case bundle::Operation::kReceive:
          prepared.first.launch = launch;
          break;
        case bundle::Operation::kReply:
        case bundle::Operation::kCollect:
          prepared.second.launch = launch;
          break;
        case bundle::Operation::kCollectView:
          prepared.view.launch = launch;
          break;
        case bundle::Operation::kExpand:
        case bundle::Operation::kIdleExpand:
          prepared.behind_first.launch = launch;
          break;
        case bundle::Operation::kReduce:
        case bundle::Operation::kIdleReduce:
          prepared.behind_second.launch = launch;
          break;
      }
    }
    buckets.push_back(prepared);
  }
  return {};
}

void Buffer::State::release() {
  if (faults.host != nullptr) backend.free_host_mapped(std::exchange(faults, {}));
  if (memory != nullptr) backend.free(std::exchange(memory, nullptr));
  if (std::exchange(has_window, false)) comm.release_window(window);
}

Result<Buffer> Buffer::create(Communicator& communicator, const bundle::Bundle& bundle,
                              const BufferOptions& options) {
  const bundle::Manifest& manifest = bundle.manifest();
  AFDEP_RETURN_IF_FAILED(check_options(options, communicator, manifest));
  Backend& backend = communicator.backend();
  Residency residency{.programmatic = std::vector<bool>(manifest.buckets.size(), true)};
  if (const std::optional<SmLimits> limits = backend.sm_limits()) {
    Result<Residency> fits = check_residency(manifest, backend.arch(), *limits, backend.sm_count(),
                                             communicator.ranks_on_device());
    if (!fits.ok()) return fits.failure();
    residency = std::move(*fits);
  }
  auto state = std::make_unique<State>(communicator, manifest);
  AFDEP_RETURN_IF_FAILED(state->join(options));
  AFDEP_RETURN_IF_FAILED(state->allocate(options));
  AFDEP_RETURN_IF_FAILED(
      state->start_generations(options.generation_before_first.value_or(kGenerationBeforeFirst)));
  AFDEP_RETURN_IF_FAILED(state->load_kernels(bundle, residency));
  return Buffer(std::move(state));
}

Buffer::Buffer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Buffer::Buffer(Buffer&&) noexcept = default;

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    Buffer closing(std::move(*this));
    state_ = std::move(other.state_);
  }
  return *this;
}

Buffer::~Buffer() {
  if (state_ == nullptr || state_->health == State::Health::kClosed) return;
  state_->open = false;
  // Nobody is left to tell: after a failed kernel the memory goes back all the same.
  if (const Result<void> closed = close(); !closed.ok()) state_->release();
}

Result<void> Buffer::close() {
  State& state = *state_;
  if (state.health == State::Health::kClosed) return {};
  if (state.open && state.health == State::Health::kUsable && !state.aborted) {
    // A wait that expired leaves the exchange open for good.
    if (const Result<void> faults = state.read_faults(); faults.ok()) {
      return Failure(
          ErrorCode::kCallOrder,
          fmt::format("close: exchange {} of rank {} is open", state.exchange, state.rank),
          state.role == bundle::Role::kAttention ? "call source_collect first, or abort()"
                                                 : "call worker_reply first, or abort()");
    }
  }
  Result<void> finished = state.backend.synchronize_all();
  state.release();
  state.health = State::Health::kClosed;
  state.open = false;
  return finished;
}

const bundle::Manifest& Buffer::manifest() const { return state_->manifest; }
int Buffer::rank() const { return state_->rank; }
bundle::Role Buffer::role() const { return state_->role; }
bool Buffer::programmatic(int bucket) const {
  for (const PreparedBucket& prepared : state_->buckets) {
    if (prepared.tokens == bucket) return prepared.programmatic;
  }
  return false;
}

}  // namespace afdep
