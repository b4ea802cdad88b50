#include "generator/verify/world.h"

#include <numeric>
#include <utility>

#include "generator/verify/slot_memory.h"
#include "runtime/transport/loopback.h"

namespace afdep::verify {

namespace {

// Passes everything on and remembers the windows.
class Watched final : public Communicator {
 public:
  Watched(Communicator& real, std::vector<std::uint8_t*>& windows)
      : real_(real), windows_(windows) {}

  [[nodiscard]] int rank() const override { return real_.rank(); }
  [[nodiscard]] int size() const override { return real_.size(); }
  [[nodiscard]] Backend& backend() const override { return real_.backend(); }
  [[nodiscard]] int ranks_on_device() const override { return real_.ranks_on_device(); }
  Result<Window> register_window(std::size_t bytes, std::span<const Field> fields) override {
    Result<Window> window = real_.register_window(bytes, fields);
    if (window.ok()) windows_ = window->address;
    return window;
  }
  void release_window(const Window& window) override { real_.release_window(window); }
  Result<void> ready(const Window& window) override { return real_.ready(window); }

 private:
  Communicator& real_;
  std::vector<std::uint8_t*>& windows_;
};

}  // namespace

World::World(Backend& backend, const bundle::Manifest& manifest)
    : backend_(backend),
      manifest_(manifest),
      shape_{.sources = manifest.attention_ranks,
             .workers = manifest.ffn_ranks,
             .hidden = manifest.hidden,
             .experts = manifest.experts,
             .top_k = manifest.top_k,
             .alignment = manifest.expert_alignment} {}

World::~World() {
  buffers_.clear();  // before the communicators and streams that they use
  for (const Stream stream : streams_) backend_.destroy_stream(stream);
  while (!slots_.empty()) free_slot(slots_.back().get());
}

Result<std::unique_ptr<World>> World::create(Backend& backend, const bundle::Bundle& bundle,
                                             const WorldOptions& options) {
  std::unique_ptr<World> world(new World(backend, bundle.manifest()));
  world->loopback_ = make_loopback(backend, world->ranks());
  for (const std::unique_ptr<Communicator>& real : world->loopback_) {
    world->communicators_.push_back(std::make_unique<Watched>(*real, world->windows_));
  }
  for (const std::unique_ptr<Communicator>& communicator : world->communicators_) {
    const Result<Stream> stream = backend.create_stream();
    if (!stream.ok()) return stream.failure();
    world->streams_.push_back(*stream);
    Result<Buffer> buffer =
        Buffer::create(*communicator, bundle,
                       {.stream = *stream,
                        .receive_storage = false,
                        .device_timeout = options.device_timeout,
                        .generation_before_first = options.generation_before_first});
    if (!buffer.ok()) return buffer.failure();
    world->buffers_.push_back(std::move(*buffer));
  }
  return world;
}

int World::receive_rows(int bucket) const {
  const bundle::Bucket* const found = manifest_.find_bucket(bucket);
  AFDEP_CHECK(found != nullptr, "the bundle has no bucket " + std::to_string(bucket));
  return static_cast<int>(found->receive_rows);
}

Stream World::stream(int world_rank) const {
  return streams_.at(static_cast<std::size_t>(world_rank));
}

std::uint8_t* World::window(int world_rank) const {
  return windows_.at(static_cast<std::size_t>(world_rank));
}

Buffer& World::buffer(int world_rank) { return buffers_.at(static_cast<std::size_t>(world_rank)); }

Result<void> World::allocate(Slot& slot, Guarded& memory, std::int64_t bytes) {
  memory.bytes = static_cast<std::size_t>(bytes);
  Result<void*> allocation = backend_.allocate(memory.bytes + 2 * kGuardBytes);
  if (!allocation.ok()) return allocation.failure();
  memory.allocation = *allocation;
  memory.data = static_cast<std::uint8_t*>(memory.allocation) + kGuardBytes;
  slot.allocations.push_back(memory.allocation);
  return {};
}

Result<Slot*> World::add_slot(int bucket) {
  // Kept before its memory is there, so that whatever is allocated is freed.
  Slot& slot = *slots_.emplace_back(std::make_unique<Slot>());
  slot.bucket = bucket;
  slot.tokens.assign(static_cast<std::size_t>(shape_.sources), 0);
  slot.sources.resize(static_cast<std::size_t>(shape_.sources));
  slot.workers.resize(static_cast<std::size_t>(shape_.workers));
  const Result<void> allocated = allocate_tensors(slot);
  if (allocated.ok()) return &slot;
  free_slot(&slot);
  return allocated.failure();
}

Result<void> World::allocate_tensors(Slot& slot) {
  const std::int64_t id_bytes = manifest_.id_type == bundle::IdType::kInt32 ? 4 : 8;
  const std::int64_t choices = std::int64_t{slot.bucket} * shape_.top_k;
  const std::int64_t token_bytes = std::int64_t{slot.bucket} * manifest_.row_bytes;
  const std::int64_t rows = receive_rows(slot.bucket);
  const std::int64_t expert_bytes = std::int64_t{shape_.local_experts()} * 4;
  for (Slot::Source& source : slot.sources) {
    AFDEP_RETURN_IF_FAILED(allocate(slot, source.x, token_bytes));
    AFDEP_RETURN_IF_FAILED(allocate(slot, source.ids, choices * id_bytes));
    AFDEP_RETURN_IF_FAILED(allocate(slot, source.weights, choices * 4));
    AFDEP_RETURN_IF_FAILED(allocate(slot, source.out, token_bytes));
  }
  for (Slot::Worker& worker : slot.workers) {
    AFDEP_RETURN_IF_FAILED(allocate(slot, worker.rows, rows * manifest_.row_bytes));
    AFDEP_RETURN_IF_FAILED(allocate(slot, worker.row_weights, rows * 4));
    AFDEP_RETURN_IF_FAILED(allocate(slot, worker.ends, expert_bytes));
    AFDEP_RETURN_IF_FAILED(allocate(slot, worker.counts, expert_bytes));
    AFDEP_RETURN_IF_FAILED(allocate(slot, worker.replies, rows * manifest_.row_bytes));
  }
  return {};
}

void World::free_slot(const Slot* slot) {
  for (void* const allocation : slot->allocations) backend_.free(allocation);
  std::erase_if(slots_, [slot](const auto& each) { return each.get() == slot; });
}

Result<void> World::load(Slot& slot, const ExchangeCase& exchange) {
  AFDEP_CHECK(slot.bucket == exchange.bucket, "a case of another bucket");
  slot.tokens = exchange.tokens();
  for (std::size_t s = 0; s < slot.sources.size(); ++s) {
    const SourceInput& input = exchange.inputs[s];
    Slot::Source& source = slot.sources[s];
    AFDEP_RETURN_IF_FAILED(write(backend_, source.x, bytes_of(input.x)));
    if (manifest_.id_type == bundle::IdType::kInt32) {
      const std::vector<std::int32_t> narrow(input.ids.begin(), input.ids.end());
      AFDEP_RETURN_IF_FAILED(write(backend_, source.ids, bytes_of(narrow)));
    } else {
      AFDEP_RETURN_IF_FAILED(write(backend_, source.ids, bytes_of(input.ids)));
    }
    AFDEP_RETURN_IF_FAILED(write(backend_, source.weights, bytes_of(input.weights)));
    AFDEP_RETURN_IF_FAILED(poison(backend_, source.out));
  }
  for (std::size_t w = 0; w < slot.workers.size(); ++w) {
    Slot::Worker& worker = slot.workers[w];
    for (const Guarded* output :
         {&worker.rows, &worker.row_weights, &worker.ends, &worker.counts}) {
      AFDEP_RETURN_IF_FAILED(poison(backend_, *output));
    }
    AFDEP_RETURN_IF_FAILED(write(backend_, worker.replies, bytes_of(exchange.replies[w])));
  }
  return {};
}

Result<void> World::enqueue(Slot& slot, int world_rank) {
  Buffer& exchange = buffer(world_rank);
  const Stream on = stream(world_rank);
  const auto index = static_cast<std::size_t>(manifest_.index_of(world_rank));
  if (manifest_.role_of(world_rank) == bundle::Role::kAttention) {
    Slot::Source& source = slot.sources[index];
    const std::int64_t tokens = slot.tokens[index];
    const DType id_type =
        manifest_.id_type == bundle::IdType::kInt32 ? DType::kInt32 : DType::kInt64;
    AFDEP_RETURN_IF_FAILED(
        exchange.source_dispatch(matrix(source.x.data, DType::kBf16, tokens, shape_.hidden),
                                 matrix(source.ids.data, id_type, tokens, shape_.top_k),
                                 matrix(source.weights.data, DType::kFloat32, tokens, shape_.top_k),
                                 {.bucket = slot.bucket, .stream = on, .after = {}, .done = {}}));
    CollectOptions collect;
    collect.stream = on;
    collect.view = slot.view;
    if (!slot.view) collect.out = matrix(source.out.data, DType::kBf16, tokens, shape_.hidden);
    const Result<Tensor> collected = exchange.source_collect(collect);
    if (!collected.ok()) return collected.failure();
    source.collected = *collected;
    return {};
  }
  const Slot::Worker& worker = slot.workers[index];
  const std::int64_t rows = receive_rows(slot.bucket);
  ReceiveOptions receive;
  receive.bucket = slot.bucket;
  receive.stream = on;
  receive.into =
      ReceiveStorage{.rows = matrix(worker.rows.data, DType::kBf16, rows, shape_.hidden),
                     .row_weights = vector(worker.row_weights.data, DType::kFloat32, rows),
                     .ends = vector(worker.ends.data, DType::kInt32, shape_.local_experts()),
                     .counts = vector(worker.counts.data, DType::kInt32, shape_.local_experts())};
  const Result<Received> received = exchange.worker_receive(receive);
  if (!received.ok()) return received.failure();
  return exchange.worker_reply(matrix(worker.replies.data, DType::kBf16, rows, shape_.hidden),
                               received->receipt, {.stream = on, .after = {}, .done = {}});
}

Result<void> World::enqueue_all(Slot& slot, Random& random) {
  std::vector<int> order(static_cast<std::size_t>(ranks()));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1],
              order[static_cast<std::size_t>(random.below(static_cast<int>(left)))]);
  }
  for (const int world_rank : order) AFDEP_RETURN_IF_FAILED(enqueue(slot, world_rank));
  return {};
}

Result<std::vector<Graph>> World::capture(Slot& slot, int exchanges) {
  std::vector<Graph> graphs;
  for (int world_rank = 0; world_rank < ranks(); ++world_rank) {
    AFDEP_RETURN_IF_FAILED(backend_.begin_capture(stream(world_rank)));
    Result<void> enqueued;
    for (int i = 0; i < exchanges && enqueued.ok(); ++i) enqueued = enqueue(slot, world_rank);
    // Ends the capture even if enqueueing failed, so that the stream stays usable.
    const Result<Graph> graph = backend_.end_capture(stream(world_rank));
    AFDEP_RETURN_IF_FAILED(enqueued);
    if (!graph.ok()) return graph.failure();
    graphs.push_back(*graph);
  }
  return graphs;
}

Result<void> World::check_all() {
  Diagnostics found;
  for (Buffer& each : buffers_) {
    const Result<void> checked = each.check();
    if (checked.ok()) continue;
    found.insert(found.end(), checked.diagnostics().begin(), checked.diagnostics().end());
  }
  if (!found.empty()) return Failure(std::move(found));
  return {};
}

Result<void> World::close_all() {
  Diagnostics found;
  for (Buffer& each : buffers_) {
    const Result<void> closed = each.close();
    if (closed.ok()) continue;
    found.insert(found.end(), closed.diagnostics().begin(), closed.diagnostics().end());
  }
  if (!found.empty()) return Failure(std::move(found));
  return {};
}

}  // namespace afdep::verify
