// The four operations: check, launch one kernel, remember what is open.
#include "runtime/exchange.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/exchange_state.h"
#include "runtime/fault_report.h"
#include "runtime/tensor_check.h"

namespace afdep {
namespace {

constexpr std::uint32_t kRecordComplete = 2;  // WaitFault::state and RouteFault::state

DType id_dtype(bundle::IdType type) {
  return type == bundle::IdType::kInt32 ? DType::kInt32 : DType::kInt64;
}

}  // namespace

Result<void> Buffer::State::usable(bundle::Role wanted, const char* call) {
  if (health == Health::kClosed) {
    return Failure(ErrorCode::kCallOrder, fmt::format("{}: the buffer is closed", call));
  }
  if (aborted || health == Health::kTimedOut) {
    return Failure(ErrorCode::kAborted,
                   fmt::format("{}: rank {} {}", call, rank,
                               aborted ? "was aborted" : "gave up on a peer earlier"),
                   "close the buffers of all ranks and create new ones");
  }
  if (role != wanted) {
    return Failure(ErrorCode::kCallOrder,
                   fmt::format("{} is an operation of {} ranks; rank {} is {} {}", call,
                               to_string(wanted), rank, to_string(role), index));
  }
  // One look at host memory: an exchange that cannot end is found at the next call.
  const auto* const records = static_cast<const Faults*>(faults.host);
  if (std::atomic_ref(const_cast<std::uint32_t&>(records->wait.state))
          .load(std::memory_order_relaxed) == kRecordComplete) {
    AFDEP_RETURN_IF_FAILED(read_faults());
  }
  if (!ready) {
    AFDEP_RETURN_IF_FAILED(comm.ready(window));
    ready = true;
  }
  return {};
}

Result<const PreparedBucket*> Buffer::State::find_bucket(int wanted, const char* call) const {
  for (const PreparedBucket& each : buckets) {
    if (each.tokens == wanted) return &each;
  }
  std::string have;
  for (const PreparedBucket& each : buckets) {
    have += (have.empty() ? "" : ", ") + std::to_string(each.tokens);
  }
  return Failure(ErrorCode::kBuckets,
                 fmt::format("{}: bucket {} is not in the bundle {}", call, wanted, manifest.name),
                 fmt::format("use one of {}, or add it to capacity.buckets", have));
}

Result<void> Buffer::State::may_open(const char* call) const {
  if (!open) return {};
  return Failure(
      ErrorCode::kCallOrder,
      fmt::format("{}: exchange {} of rank {} is still open", call, exchange, rank),
      role == bundle::Role::kAttention ? "call source_collect first" : "call worker_reply first");
}

Result<bool> Buffer::State::capturing(Stream stream, const char* call) const {
  const bool captures = backend.is_capturing(stream);
  if (captures && !manifest.capture) {
    return Failure(ErrorCode::kInCapture,
                   fmt::format("{}: the stream is capturing a graph, but {} has graph.mode: off",
                               call, manifest.name),
                   "set graph.mode: capture in the spec");
  }
  return captures;
}

Result<void> Buffer::State::same_capture(Stream stream, const char* call) const {
  const Result<bool> captures = capturing(stream, call);
  if (!captures.ok()) return captures.failure();
  if (*captures == open_in_capture) return {};
  return Failure(
      ErrorCode::kCallOrder,
      fmt::format("{}: exchange {} began {} a capture and would end {} it", call, exchange,
                  open_in_capture ? "inside" : "outside", open_in_capture ? "outside" : "inside"),
      "capture complete exchanges");
}

template <typename Args>
Result<void> Buffer::State::enqueue(const PreparedKernel& kernel, const PreparedKernel& epilogue,
                                    const Args& args, Stream stream, Event after, Event done) {
  if (after != Event{}) AFDEP_RETURN_IF_FAILED(backend.wait(after, stream));
  for (const PreparedKernel* const each : {&kernel, &epilogue}) {
    if (each->launch.kernel == nullptr) continue;
    Launch launch = each->launch;
    launch.args = &args;
    launch.args_bytes = sizeof(args);
    AFDEP_RETURN_IF_FAILED(backend.launch(launch, stream));
  }
  if (done != Event{}) AFDEP_RETURN_IF_FAILED(backend.record(done, stream));
  return {};
}

Result<void> Buffer::State::read_faults() {
  auto* const records = static_cast<Faults*>(faults.host);
  Diagnostics found;
  // acquire: pairs with the kernel's release of a complete record
  if (std::atomic_ref(records->wait.state).load(std::memory_order_acquire) == kRecordComplete &&
      health == Health::kUsable) {
    found.push_back(describe(records->wait, manifest, rank, timeout_ms));
    health = Health::kTimedOut;
  }
  std::atomic_ref<std::uint32_t> route(records->route.state);
  if (route.load(std::memory_order_acquire) == kRecordComplete) {
    found.push_back(describe(records->route, manifest, rank));
    route.store(0, std::memory_order_release);  // the next bad id is recorded again
  }
  if (!found.empty()) return Failure(std::move(found));
  return {};
}

Result<void> Buffer::source_dispatch(const Tensor& x, const Tensor& ids, const Tensor& weights,
                                     const DispatchOptions& options) {
  constexpr const char* kCall = "source_dispatch";
  State& state = *state_;
  AFDEP_RETURN_IF_FAILED(state.usable(bundle::Role::kAttention, kCall));
  AFDEP_RETURN_IF_FAILED(state.may_open(kCall));
  const Result<const PreparedBucket*> bucket = state.find_bucket(options.bucket, kCall);
  if (!bucket.ok()) return bucket.failure();
  const std::int64_t tokens = x.shape[0];
  if (tokens > options.bucket) {
    return Failure(ErrorCode::kTokens,
                   fmt::format("{}: {} tokens exceed bucket {}", kCall, tokens, options.bucket),
                   "use a larger bucket, the same on every rank, or split the batch");
  }
  AFDEP_RETURN_IF_FAILED(afdep::check(
      x, {.call = kCall, .argument = "x", .rows = tokens, .columns = state.manifest.hidden},
      state.backend));
  const DType id_type = id_dtype(state.manifest.id_type);
  AFDEP_RETURN_IF_FAILED(afdep::check(ids,
                                      {.call = kCall,
                                       .argument = "ids",
                                       .code = ErrorCode::kRouteTensor,
                                       .dtype = id_type,
                                       .rows = tokens,
                                       .columns = state.manifest.top_k,
                                       .alignment = static_cast<int>(bytes_of(id_type))},
                                      state.backend));
  AFDEP_RETURN_IF_FAILED(afdep::check(weights,
                                      {.call = kCall,
                                       .argument = "weights",
                                       .code = ErrorCode::kRouteTensor,
                                       .dtype = DType::kFloat32,
                                       .rows = tokens,
                                       .columns = state.manifest.top_k,
                                       .alignment = 4},
                                      state.backend));
  const Result<bool> captures = state.capturing(options.stream, kCall);
  if (!captures.ok()) return captures.failure();

  const DispatchArgs args{.common = state.common,
                          .x = x.data,
                          .ids = ids.data,
                          .weights = static_cast<const float*>(weights.data),
                          .tokens = static_cast<std::uint32_t>(tokens),
                          .reserved = 0};
  AFDEP_RETURN_IF_FAILED(state.enqueue((*bucket)->first, (*bucket)->behind_first, args,
                                       options.stream, options.after, options.done));
  state.open = true;
  state.open_in_capture = *captures;
  ++state.exchange;
  state.bucket = *bucket;
  state.tokens = tokens;
  return {};
}

Result<Tensor> Buffer::source_collect(const CollectOptions& options) {
  constexpr const char* kCall = "source_collect";
  State& state = *state_;
  AFDEP_RETURN_IF_FAILED(state.usable(bundle::Role::kAttention, kCall));
  if (!state.open) {
    return Failure(ErrorCode::kCallOrder,
                   fmt::format("{}: rank {} has no open exchange", kCall, state.rank),
                   "call source_dispatch first");
  }
  if (options.view == options.out.has_value()) {
    return Failure(
        ErrorCode::kPayloadTensor,
        fmt::format("{}: {}", kCall,
                    options.view ? "both out and view are given" : "neither out nor view is given"),
        "pass `out`, or set `view` where the layout has one");
  }
  const bundle::Manifest& manifest = state.manifest;
  if (options.view && !manifest.has_view) {
    return Failure(ErrorCode::kUnsupported,
                   fmt::format("{}: {} ({}A{}F) has no view", kCall, manifest.name,
                               manifest.attention_ranks, manifest.ffn_ranks),
                   "a view needs one FFN rank: with more, a row is a sum; pass `out`");
  }
  Tensor out;
  if (options.view) {
    const bundle::Region& view = *find_region(manifest.attention.window, "view");
    out = matrix(state.common.window + view.offset, DType::kBf16, state.tokens, manifest.hidden);
    out.stride[0] = view.item_bytes / bytes_of(DType::kBf16);
  } else {
    out = *options.out;
    AFDEP_RETURN_IF_FAILED(afdep::check(
        out, {.call = kCall, .argument = "out", .rows = state.tokens, .columns = manifest.hidden},
        state.backend));
  }
  AFDEP_RETURN_IF_FAILED(state.same_capture(options.stream, kCall));

  const CollectArgs args{.common = state.common,
                         .out = out.data,
                         .tokens = static_cast<std::uint32_t>(state.tokens),
                         .reserved = 0};
  // Where replies land in the view by themselves, a kernel only waits for them.
  const bool waits_only = options.view && state.bucket->view.launch.kernel != nullptr;
  const PreparedBucket& bucket = *state.bucket;
  const PreparedKernel none;
  AFDEP_RETURN_IF_FAILED(state.enqueue(waits_only ? bucket.view : bucket.second,
                                       waits_only ? none : bucket.behind_second, args,
                                       options.stream, options.after, options.done));
  state.open = false;
  return out;
}

Result<Received> Buffer::worker_receive(const ReceiveOptions& options) {
  constexpr const char* kCall = "worker_receive";
  State& state = *state_;
  AFDEP_RETURN_IF_FAILED(state.usable(bundle::Role::kFfn, kCall));
  AFDEP_RETURN_IF_FAILED(state.may_open(kCall));
  const Result<const PreparedBucket*> bucket = state.find_bucket(options.bucket, kCall);
  if (!bucket.ok()) return bucket.failure();
  const bundle::Manifest& manifest = state.manifest;
  const Result<bool> captures = state.capturing(options.stream, kCall);
  if (!captures.ok()) return captures.failure();
  if (options.read_host_counts && (!manifest.host_counts || *captures)) {
    return Failure(
        ErrorCode::kHostCounts,
        *captures ? fmt::format("{}: read_host_counts inside a capture", kCall)
                  : fmt::format("{}: read_host_counts, but {} was generated without it", kCall,
                                manifest.name),
        "set receive.host_counts: true and graph.mode: off in the spec, and run eagerly");
  }
  const std::int64_t rows = (*bucket)->receive_rows;
  const std::int64_t experts = manifest.local_experts();
  if (options.into) {
    const auto check_one = [&](const Tensor& tensor, const char* argument, ErrorCode code,
                               DType type, int dimensions, std::int64_t count, int alignment) {
      return afdep::check(tensor,
                          {.call = kCall,
                           .argument = argument,
                           .code = code,
                           .dtype = type,
                           .rank = dimensions,
                           .rows = count,
                           .columns = manifest.hidden,
                           .alignment = alignment},
                          state.backend);
    };
    constexpr ErrorCode kPayload = ErrorCode::kPayloadTensor;
    constexpr ErrorCode kRoute = ErrorCode::kRouteTensor;
    const ReceiveStorage& into = *options.into;
    AFDEP_RETURN_IF_FAILED(check_one(into.rows, "into.rows", kPayload, DType::kBf16, 2, rows, 16));
    AFDEP_RETURN_IF_FAILED(
        check_one(into.row_weights, "into.row_weights", kRoute, DType::kFloat32, 1, rows, 4));
    AFDEP_RETURN_IF_FAILED(check_one(into.ends, "into.ends", kRoute, DType::kInt32, 1, experts, 4));
    AFDEP_RETURN_IF_FAILED(
        check_one(into.counts, "into.counts", kRoute, DType::kInt32, 1, experts, 4));
  } else if (!state.storage) {
    return Failure(ErrorCode::kPayloadTensor,
                   fmt::format("{}: the buffer was created without receive storage", kCall),
                   "pass `into`, or create the buffer with receive_storage");
  }

  const ReceiveStorage& to = options.into ? *options.into : *state.storage;
  Received received;
  received.rows = to.rows;
  received.rows.shape[0] = rows;
  received.row_weights = to.row_weights;
  received.row_weights.shape[0] = rows;
  received.ends = to.ends;
  received.counts = to.counts;
  const ReceiveArgs args{.common = state.common,
                         .rows = to.rows.data,
                         .row_weights = static_cast<float*>(to.row_weights.data),
                         .ends = static_cast<std::int32_t*>(to.ends.data),
                         .counts = static_cast<std::int32_t*>(to.counts.data)};
  AFDEP_RETURN_IF_FAILED(state.enqueue((*bucket)->first, (*bucket)->behind_first, args,
                                       options.stream, options.after, options.done));
  state.open = true;
  state.open_in_capture = *captures;
  ++state.exchange;
  state.bucket = *bucket;
  state.receive_rows = rows;
  received.receipt = Receipt(state.id, state.exchange);
  if (!options.read_host_counts) return received;

  AFDEP_RETURN_IF_FAILED(state.backend.synchronize(options.stream));
  AFDEP_RETURN_IF_FAILED(state.read_faults());
  received.host_counts.resize(static_cast<std::size_t>(experts));
  AFDEP_RETURN_IF_FAILED(state.backend.copy_to_host(received.host_counts.data(), to.counts.data,
                                                    received.host_counts.size() * 4));
  std::int64_t exact = 0;
  for (std::int32_t& count : received.host_counts) {
    count = (count + manifest.expert_alignment - 1) / manifest.expert_alignment *
            manifest.expert_alignment;
    exact += count;
  }
  AFDEP_CHECK(exact <= rows, fmt::format("{} received rows exceed {}", exact, rows));
  received.rows.shape[0] = exact;
  received.row_weights.shape[0] = exact;
  state.receive_rows = exact;
  return received;
}

Result<void> Buffer::worker_reply(const Tensor& rows, const Receipt& receipt,
                                  const ReplyOptions& options) {
  constexpr const char* kCall = "worker_reply";
  State& state = *state_;
  AFDEP_RETURN_IF_FAILED(state.usable(bundle::Role::kFfn, kCall));
  if (receipt.buffer_ != state.id) {
    return Failure(ErrorCode::kReceipt,
                   fmt::format("{}: the receipt is {}", kCall,
                               receipt.buffer_ == 0 ? "of no exchange" : "of another buffer"),
                   "pass the receipt that this buffer's worker_receive returned");
  }
  if (receipt.exchange_ != state.exchange || !state.open) {
    return Failure(ErrorCode::kReceipt,
                   receipt.exchange_ == state.exchange
                       ? fmt::format("{}: the receipt of exchange {} was already used", kCall,
                                     receipt.exchange_)
                       : fmt::format("{}: the receipt is of exchange {}; the last one is {}", kCall,
                                     receipt.exchange_, state.exchange),
                   "reply once to each receive, before the next one");
  }
  AFDEP_RETURN_IF_FAILED(afdep::check(rows,
                                      {.call = kCall,
                                       .argument = "rows",
                                       .rows = state.receive_rows,
                                       .columns = state.manifest.hidden},
                                      state.backend));
  AFDEP_RETURN_IF_FAILED(state.same_capture(options.stream, kCall));
  const ReplyArgs args{.common = state.common, .rows = rows.data};
  AFDEP_RETURN_IF_FAILED(state.enqueue(state.bucket->second, state.bucket->behind_second, args,
                                       options.stream, options.after, options.done));
  state.open = false;
  return {};
}

Result<void> Buffer::check() {
  State& state = *state_;
  if (state.health == State::Health::kClosed) {
    return Failure(ErrorCode::kCallOrder, "check: the buffer is closed");
  }
  AFDEP_RETURN_IF_FAILED(state.read_faults());
  if (state.aborted || state.health == State::Health::kTimedOut) {
    return Failure(ErrorCode::kAborted,
                   fmt::format("check: rank {} {}", state.rank,
                               state.aborted ? "was aborted" : "gave up on a peer earlier"),
                   "close the buffers of all ranks and create new ones");
  }
  return {};
}

Result<std::vector<std::byte>> Buffer::read_trace() {
  State& state = *state_;
  if (state.health == State::Health::kClosed) {
    return Failure(ErrorCode::kCallOrder, "read_trace: the buffer is closed");
  }
  const bundle::Region* const region =
      find_region(state.manifest.layout(state.role).workspace, "trace");
  if (region == nullptr) {
    return Failure(ErrorCode::kUnsupported,
                   fmt::format("read_trace: the kernels of {} record nothing", state.manifest.name),
                   "generate the bundle with --trace");
  }
  std::vector<std::byte> records(static_cast<std::size_t>(region->bytes()));
  AFDEP_RETURN_IF_FAILED(state.backend.copy_to_host(
      records.data(), state.common.workspace + region->offset, records.size()));
  return records;
}

Result<void> Buffer::abort() {
  State& state = *state_;
  if (state.health == State::Health::kClosed) {
    return Failure(ErrorCode::kCallOrder, "abort: the buffer is closed");
  }
  state.aborted = true;
  const std::uint32_t set = 1;
  return state.backend.copy_to_device(&state.common.control->abort, &set, sizeof(set));
}

}  // namespace afdep
