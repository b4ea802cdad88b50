// The exchange between attention and FFN ranks: four operations a layer, eager or inside a CUDA
// graph.
//   attention: source_dispatch, then source_collect.   FFN: worker_receive, then worker_reply.
// Every operation enqueues one kernel on the caller's stream and returns; none blocks, allocates or
// reads the environment (worker_receive with read_host_counts blocks, and says so). Contract:
// docs/runtime.md.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/bundle/bundle.h"
#include "runtime/receipt.h"
#include "runtime/support/result.h"
#include "runtime/tensor.h"
#include "runtime/transport/communicator.h"

namespace afdep {

// Where worker_receive writes. H is the hidden size, N the receive_rows of the bucket, L the
// experts of a worker.
struct ReceiveStorage {
  Tensor rows;         // BF16 [N, H]
  Tensor row_weights;  // FP32 [N]
  Tensor ends;         // int32 [L]
  Tensor counts;       // int32 [L]
};

struct BufferOptions {
  // The stream that the caller is about to use: creation is refused while it captures a graph.
  // None: not checked.
  Stream stream{};
  // The buffer owns storage for the largest bucket, which each receive writes anew. False saves it:
  // every worker_receive is then given `into`.
  bool receive_storage = true;
  // Replaces the bundle's bound of each wait on the device.
  std::optional<std::chrono::milliseconds> device_timeout = std::nullopt;
  // The generation before the first one. Any but the default is for tests of the wrap; equal on
  // every rank.
  std::optional<std::uint32_t> generation_before_first = std::nullopt;
};

// Events are optional (Event{} is none): the operation waits for `after` first and records `done`
// last.
struct DispatchOptions {
  int bucket = 0;
  Stream stream{};
  Event after{};
  Event done{};
};

struct ReceiveOptions {
  int bucket = 0;
  Stream stream{};
  // Waits for the kernel and cuts the rows to their exact number. Needs receive.host_counts in the
  // spec; never in a capture.
  bool read_host_counts = false;
  std::optional<ReceiveStorage> into = std::nullopt;  // instead of the buffer's own storage
  Event after{};
  Event done{};
};

struct ReplyOptions {
  Stream stream{};
  Event after{};
  Event done{};
};

struct CollectOptions {
  std::optional<Tensor> out = std::nullopt;  // BF16 [T, H]; exactly one of `out` and `view`
  bool view = false;  // return the rows where they are; only in layouts that have a view
  Stream stream{};
  Event after{};
  Event done{};
};

// One worker's share of an exchange. The tensors lie in the buffer's storage, valid until the next
// worker_receive is enqueued, or in the caller's. Expert e of this worker occupies rows
// [align_up(ends[e-1], expert_alignment), ends[e]), with ends[-1] = 0.
struct Received {
  Tensor rows;  // BF16 [N, H]; rows outside every expert's range are unspecified, or zero between
                // experts with receive.padding: zero
  Tensor row_weights;  // FP32 [N]: routing weight of a row, for the caller to apply once
  Tensor ends;         // int32 [L], on the device
  Tensor counts;       // int32 [L], on the device: live rows of each expert
  Receipt receipt;
  // With read_host_counts: rows of each expert including its padding, aligned. Otherwise empty.
  std::vector<std::int32_t> host_counts;
};

// One rank's end of an exchange. Not thread-safe, except abort(). Any number of buffers may be
// open; each has its own order of exchanges, equal on all of its ranks. Exchanges of all buckets
// share the buffer's memory.
//
// Errors that every operation reports: kCallOrder (the wrong role, closed, or out of order),
// kBuckets and kTokens, kPayloadTensor and kRouteTensor, kInCapture, kWaitTimedOut once and then
// kAborted until closed (a wait of an earlier kernel expired). An operation that fails before its
// launch changes nothing.
class Buffer {
 public:
  // Collective: every rank of the communicator, in the same order of buffers. Registers the window,
  // allocates everything, loads every kernel of this rank's role. The communicator must outlive the
  // buffer; the bundle is not needed afterwards. Also fails with kRanksDisagree, kLaunch (kernels
  // of ranks that share a GPU do not fit it together), kArch, kMemory.
  static Result<Buffer> create(Communicator& communicator, const bundle::Bundle& bundle,
                               const BufferOptions& options);

  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  // Closes, whatever is open.
  ~Buffer();

  // Attention. x BF16 [T, H], ids int32 or int64 (as the spec says) [T, K], weights FP32 [T, K];
  // all contiguous, T <= bucket. They must stay as they are until the kernel has run.
  Result<void> source_dispatch(const Tensor& x, const Tensor& ids, const Tensor& weights,
                               const DispatchOptions& options);

  // FFN.
  Result<Received> worker_receive(const ReceiveOptions& options);

  // FFN. rows: BF16 of the shape that the receive returned, holding the weighted expert outputs in
  // place of the received rows.
  Result<void> worker_reply(const Tensor& rows, const Receipt& receipt,
                            const ReplyOptions& options);

  // Attention. Returns `out`, or a strided view of the window: read only, valid until the next
  // source_dispatch is enqueued.
  Result<Tensor> source_collect(const CollectOptions& options);

  // Reads what the kernels have reported. kWaitTimedOut: a wait expired; the buffer is of no
  // further use but to be closed. kRouteId: an id was out of range or repeated; reported once, the
  // buffer goes on. Does not wait for running kernels.
  Result<void> check();

  // The region `trace` of this rank's workspace, as its kernels have left it: TraceRecords
  // (trace_abi.h) laid out by the manifest's region. Does not wait for running kernels. E404 if the
  // bundle is not a traced one.
  Result<std::vector<std::byte>> read_trace();

  // Ends every wait of this rank's kernels, running and later ones. From any thread.
  Result<void> abort();

  // Waits for outstanding work and frees everything. Refused with kCallOrder while an exchange is
  // open, unless a wait expired or abort() was called. Destroy graphs that use the buffer first.
  // Closing again does nothing.
  Result<void> close();

  [[nodiscard]] const bundle::Manifest& manifest() const;
  [[nodiscard]] int rank() const;  // world rank
  [[nodiscard]] bundle::Role role() const;
  // Whether the bucket's kernels may become resident before the kernel before them ends; false for
  // a bucket that the spec does not have.
  [[nodiscard]] bool programmatic(int bucket) const;

 private:
  struct State;
  explicit Buffer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace afdep
