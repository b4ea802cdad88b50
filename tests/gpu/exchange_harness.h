// All ranks of a bundle on one backend: fills their memory, enqueues exchanges, eager or as graphs,
// and compares what arrived bit for bit.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exchange.h"
#include "runtime/transport/loopback.h"
#include "tests/gpu/exchange_data.h"

namespace afdep::exchange_test {

// Ends the test with the diagnostics: everything below it is set-up.
template <typename T>
T require(Result<T> result) {
  if (!result.ok()) throw std::runtime_error(to_string(result.diagnostics()));
  return std::move(*result);
}
inline void require(const Result<void>& result) {
  if (!result.ok()) throw std::runtime_error(to_string(result.diagnostics()));
}

// Ranks and their streams; the buffers of several worlds may share one.
class Group {
 public:
  Group(Backend& backend, int size) : backend_(backend), ranks_(make_loopback(backend, size)) {
    for (int rank = 0; rank < size; ++rank) streams_.push_back(require(backend.create_stream()));
  }
  ~Group() {
    for (const Stream stream : streams_) backend_.destroy_stream(stream);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  [[nodiscard]] Backend& backend() { return backend_; }
  [[nodiscard]] Communicator& rank(int world) { return *ranks_[static_cast<std::size_t>(world)]; }
  [[nodiscard]] Stream stream(int world) { return streams_[static_cast<std::size_t>(world)]; }
  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  void synchronize() {
    for (const Stream stream : streams_) require(backend_.synchronize(stream));
  }

 private:
  Backend& backend_;
  std::vector<std::unique_ptr<Communicator>> ranks_;
  std::vector<Stream> streams_;
};

struct WorldOptions {
  int slots = 1;  // exchanges that may be enqueued without a look at their data
  BufferOptions buffer = {};
  bool own_receive_storage = false;  // receive into the buffer's storage instead of each slot's
  bool read_host_counts = false;     // dispatch of every source must be enqueued before
};

class World {
 public:
  World(Group& group, const bundle::Bundle& bundle, const WorldOptions& options)
      : group_(group), backend_(group.backend()), m_(bundle.manifest()), options_(options) {
    BufferOptions buffer = options.buffer;
    buffer.receive_storage = options.own_receive_storage;
    for (int rank = 0; rank < group.size(); ++rank) {
      buffer.stream = group.stream(rank);
      buffers_.push_back(require(Buffer::create(group.rank(rank), bundle, buffer)));
    }
    for (int slot = 0; slot < options.slots; ++slot) {
      slots_.emplace_back();
      for (int rank = 0; rank < group.size(); ++rank) slots_.back().push_back(allocate(rank));
    }
    tickets_.resize(slots_.size());
  }
  ~World() {
    for (const Graph graph : graphs_) backend_.destroy_graph(graph);
    buffers_.clear();
    for (void* memory : memory_) backend_.free(memory);
    for (const Scratch& scratch : scratch_) {
      if (scratch.memory.host != nullptr) backend_.free_host_mapped(scratch.memory);
    }
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] Buffer& buffer(int rank) { return buffers_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const bundle::Manifest& manifest() const { return m_; }
  // What the worker's receive of the slot returned.
  [[nodiscard]] const Received& received(int slot, int rank) {
    return tickets_[static_cast<std::size_t>(slot)][rank];
  }

  // Puts a new exchange into the slot and poisons everything that it will write. Nothing may be
  // running.
  void fill(int slot, const ExchangeData& data) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      Memory& memory = at(slot, rank);
      const auto index = static_cast<std::size_t>(m_.index_of(rank));
      if (m_.role_of(rank) == bundle::Role::kAttention) {
        const Source& source = data.sources[index];
        put(memory.x, source.x.data(), source.x.size() * 2);
        put_ids(memory.ids, source.ids);
        put(memory.weights, source.weights.data(), source.weights.size() * 4);
        poison(memory.out, out_bytes());
      } else {
        const auto bytes = data.replies[index].size() * 2;
        if (const auto kept = kept_.find(&data); kept != kept_.end()) {
          require(backend_.copy_on_stream(memory.replies, kept->second[index], bytes,
                                          group_.stream(rank)));
        } else {
          put(memory.replies, data.replies[index].data(), bytes);
        }
        if (options_.own_receive_storage) continue;
        const auto rows = static_cast<std::size_t>(m_.find_bucket(data.bucket)->receive_rows);
        poison(memory.rows, rows * static_cast<std::size_t>(m_.row_bytes));
        poison(memory.row_weights, rows * 4);
        poison(memory.ends, experts() * 4);
        poison(memory.counts, experts() * 4);
      }
    }
  }

  // Holds the exchange's replies on the device, for data that fill() gets again and again. `data`
  // must stay where it is.
  void keep(const ExchangeData& data) {
    for (const std::vector<Bf16>& replies : data.replies) {
      kept_[&data].push_back(take(replies.size() * 2));
      put(kept_[&data].back(), replies.data(), replies.size() * 2);
    }
  }

  // The two halves of an exchange, for one rank.
  void enqueue_first(int slot, int rank, const ExchangeData& data) {
    const Stream stream = group_.stream(rank);
    Memory& memory = at(slot, rank);
    if (m_.role_of(rank) == bundle::Role::kAttention) {
      const std::int64_t tokens = data.sources[static_cast<std::size_t>(m_.index_of(rank))].tokens;
      require(
          buffer(rank).source_dispatch(matrix(memory.x, DType::kBf16, tokens, m_.hidden),
                                       matrix(memory.ids, id_type(), tokens, m_.top_k),
                                       matrix(memory.weights, DType::kFloat32, tokens, m_.top_k),
                                       {.bucket = data.bucket, .stream = stream}));
      return;
    }
    ReceiveOptions options{
        .bucket = data.bucket, .stream = stream, .read_host_counts = options_.read_host_counts};
    if (!options_.own_receive_storage) {
      const std::int64_t rows = m_.find_bucket(data.bucket)->receive_rows;
      const auto local = static_cast<std::int64_t>(experts());
      options.into =
          ReceiveStorage{.rows = matrix(memory.rows, DType::kBf16, rows, m_.hidden),
                         .row_weights = vector(memory.row_weights, DType::kFloat32, rows),
                         .ends = vector(memory.ends, DType::kInt32, local),
                         .counts = vector(memory.counts, DType::kInt32, local)};
    }
    tickets_[static_cast<std::size_t>(slot)][rank] = require(buffer(rank).worker_receive(options));
  }

  void enqueue_second(int slot, int rank, const ExchangeData& data, bool view = false) {
    const Stream stream = group_.stream(rank);
    Memory& memory = at(slot, rank);
    if (m_.role_of(rank) == bundle::Role::kAttention) {
      const std::int64_t tokens = data.sources[static_cast<std::size_t>(m_.index_of(rank))].tokens;
      CollectOptions options{.view = view, .stream = stream};
      if (!view) options.out = matrix(memory.out, DType::kBf16, tokens, m_.hidden);
      memory.collected = require(buffer(rank).source_collect(options));
      return;
    }
    const Received& received = tickets_[static_cast<std::size_t>(slot)][rank];
    require(buffer(rank).worker_reply(
        matrix(memory.replies, DType::kBf16, received.rows.shape[0], m_.hidden), received.receipt,
        {.stream = stream}));
  }

  void enqueue(int slot, const ExchangeData& data, bool view = false) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      enqueue_first(slot, rank, data);
      enqueue_second(slot, rank, data, view);
    }
  }

  // One graph a rank that runs the exchanges of the first `data.size()` slots. Tokens and buckets
  // are those of `data`.
  void capture(const std::vector<ExchangeData>& data) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      require(backend_.begin_capture(group_.stream(rank)));
      for (std::size_t slot = 0; slot < data.size(); ++slot) {
        enqueue_first(static_cast<int>(slot), rank, data[slot]);
        enqueue_second(static_cast<int>(slot), rank, data[slot]);
      }
      graphs_.push_back(require(backend_.end_capture(group_.stream(rank))));
    }
  }

  // The graphs of the newest capture.
  void replay() {
    const std::size_t first = graphs_.size() - static_cast<std::size_t>(group_.size());
    for (int rank = 0; rank < group_.size(); ++rank) {
      require(
          backend_.replay(graphs_[first + static_cast<std::size_t>(rank)], group_.stream(rank)));
    }
  }

  // After the streams are done. Adds a test failure that starts with `what` for the first
  // difference of each rank.
  void expect(int slot, const ExchangeData& data, const std::string& what) {
    for (int rank = 0; rank < group_.size(); ++rank) {
      const Result<void> healthy = buffer(rank).check();
      EXPECT_TRUE(healthy.ok()) << what << ": "
                                << to_string(healthy.ok() ? Diagnostics{} : healthy.diagnostics());
      const std::string difference = m_.role_of(rank) == bundle::Role::kAttention
                                         ? compare_source(slot, rank, data)
                                         : compare_worker(slot, rank, data);
      EXPECT_EQ(difference, "") << what << ", rank " << rank;
    }
  }

 private:
  static constexpr std::uint8_t kPoison = 0xc7;

  struct Memory {
    std::byte* x = nullptr;
    std::byte* ids = nullptr;
    std::byte* weights = nullptr;
    std::byte* out = nullptr;
    std::byte* replies = nullptr;
    std::byte* rows = nullptr;
    std::byte* row_weights = nullptr;
    std::byte* ends = nullptr;
    std::byte* counts = nullptr;
    Tensor collected;
  };

  [[nodiscard]] Memory& at(int slot, int rank) {
    return slots_[static_cast<std::size_t>(slot)][static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] DType id_type() const {
    return m_.id_type == bundle::IdType::kInt32 ? DType::kInt32 : DType::kInt64;
  }
  [[nodiscard]] std::size_t experts() const { return static_cast<std::size_t>(m_.local_experts()); }
  // The largest bucket that the tests use keeps their memory small.
  [[nodiscard]] int most_tokens() const {
    int most = m_.buckets.front().tokens;
    for (const bundle::Bucket& bucket : m_.buckets) {
      if (bucket.tokens <= 128) most = bucket.tokens;
    }
    return most;
  }
  [[nodiscard]] std::size_t out_bytes() const {
    return static_cast<std::size_t>(most_tokens()) * static_cast<std::size_t>(m_.row_bytes);
  }

  std::byte* take(std::size_t bytes) {
    memory_.push_back(require(backend_.allocate(bytes)));
    return static_cast<std::byte*>(memory_.back());
  }

  Memory allocate(int rank) {
    Memory memory;
    const auto choices =
        static_cast<std::size_t>(most_tokens()) * static_cast<std::size_t>(m_.top_k);
    if (m_.role_of(rank) == bundle::Role::kAttention) {
      memory.x = take(out_bytes());
      memory.ids = take(choices * 8);
      memory.weights = take(choices * 4);
      memory.out = take(out_bytes());
      return memory;
    }
    const auto rows = static_cast<std::size_t>(m_.find_bucket(most_tokens())->receive_rows);
    const std::size_t row_bytes = rows * static_cast<std::size_t>(m_.row_bytes);
    memory.replies = take(row_bytes);
    if (options_.own_receive_storage) return memory;
    memory.rows = take(row_bytes);
    memory.row_weights = take(rows * 4);
    memory.ends = take(experts() * 4);
    memory.counts = take(experts() * 4);
    return memory;
  }

  void put(std::byte* to, const void* from, std::size_t bytes) {
    require(backend_.copy_to_device(to, from, bytes));
  }
  void put_ids(std::byte* to, const std::vector<std::int64_t>& ids) {
    if (id_type() == DType::kInt64) return put(to, ids.data(), ids.size() * 8);
    const std::vector<std::int32_t> narrow_ids(ids.begin(), ids.end());
    put(to, narrow_ids.data(), narrow_ids.size() * 4);
  }
  void poison(std::byte* memory, std::size_t bytes) {
    require(backend_.fill(memory, kPoison, bytes));
  }
  // A copy of device memory, valid until the next get() with the same `place`. Pinned: a device
  // copies there several times faster.
  template <typename T>
  std::span<const T> get(int place, const void* from, std::size_t count) {
    Scratch& scratch = scratch_[static_cast<std::size_t>(place)];
    if (scratch.bytes < count * sizeof(T)) {
      if (scratch.memory.host != nullptr) backend_.free_host_mapped(scratch.memory);
      scratch = {};
      scratch.memory = require(backend_.allocate_host_mapped(count * sizeof(T)));
      scratch.bytes = count * sizeof(T);
    }
    require(backend_.copy_to_host(scratch.memory.host, from, count * sizeof(T)));
    return {static_cast<const T*>(scratch.memory.host), count};
  }

  std::string compare_source(int slot, int rank, const ExchangeData& data) {
    const auto& expected = data.out[static_cast<std::size_t>(m_.index_of(rank))];
    const Memory& memory = at(slot, rank);
    const auto hidden = static_cast<std::size_t>(m_.hidden);
    const auto pitch = static_cast<std::size_t>(memory.collected.stride[0]);
    const std::size_t tokens = expected.size() / hidden;
    if (tokens == 0) return {};
    const auto found = get<Bf16>(0, memory.collected.data, (tokens - 1) * pitch + hidden);
    for (std::size_t token = 0; token < tokens; ++token) {
      if (std::memcmp(&found[token * pitch], &expected[token * hidden], hidden * 2) == 0) continue;
      for (std::size_t column = 0; column < hidden; ++column) {
        const Bf16 is = found[token * pitch + column];
        const Bf16 should = expected[token * hidden + column];
        if (is != should) return text("out", token, column, is, should);
      }
    }
    // Nothing beyond the last token.
    if (memory.collected.data != memory.out) return {};
    const auto rest =
        get<std::uint8_t>(1, memory.out + expected.size() * 2, out_bytes() - expected.size() * 2);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      if (rest[i] != kPoison)
        return text("out beyond the last token, byte", i, 0, rest[i], kPoison);
    }
    return {};
  }

  std::string compare_worker(int slot, int rank, const ExchangeData& data) {
    const auto index = static_cast<std::size_t>(m_.index_of(rank));
    const Worker& expected = data.received[index];
    const Received& received = tickets_[static_cast<std::size_t>(slot)][rank];
    const auto rows = static_cast<std::size_t>(received.rows.shape[0]);
    const auto hidden = static_cast<std::size_t>(m_.hidden);
    const auto ends = get<std::int32_t>(0, received.ends.data, experts());
    const auto counts = get<std::int32_t>(1, received.counts.data, experts());
    for (std::size_t expert = 0; expert < experts(); ++expert) {
      if (ends[expert] != expected.ends[expert]) {
        return text("ends", expert, 0, ends[expert], expected.ends[expert]);
      }
      if (counts[expert] != expected.counts[expert]) {
        return text("counts", expert, 0, counts[expert], expected.counts[expert]);
      }
    }
    const auto row_data = get<Bf16>(2, received.rows.data, rows * hidden);
    const auto weights = get<float>(3, received.row_weights.data, rows);
    std::vector<bool> live(rows);
    for (const Arrival& arrival : expected.arrivals) {
      const auto row = static_cast<std::size_t>(arrival.row);
      live[row] = true;
      const Source& source = data.sources[static_cast<std::size_t>(arrival.source)];
      const Bf16* const sent = &source.x[static_cast<std::size_t>(arrival.token) * hidden];
      if (std::memcmp(&row_data[row * hidden], sent, hidden * 2) != 0) {
        for (std::size_t column = 0; column < hidden; ++column) {
          const Bf16 is = row_data[row * hidden + column];
          if (is != sent[column]) return text("rows", row, column, is, sent[column]);
        }
      }
      const float weight =
          source.weights[static_cast<std::size_t>(arrival.token * m_.top_k + arrival.choice)];
      if (weights[row] != weight) return text("row_weights", row, 0, weights[row], weight);
    }
    return compare_dead_rows(row_data, live, expected);
  }

  // Padding is zero if the spec says so; rows behind the last expert are nobody's business.
  std::string compare_dead_rows(std::span<const Bf16> rows, const std::vector<bool>& live,
                                const Worker& expected) {
    const auto hidden = static_cast<std::size_t>(m_.hidden);
    const auto alignment = static_cast<std::size_t>(m_.expert_alignment);
    const std::size_t used =
        (static_cast<std::size_t>(expected.ends.back()) + alignment - 1) / alignment * alignment;
    const std::vector<Bf16> zeros(hidden, 0);
    const std::vector<Bf16> poisoned(hidden, kPoison << 8 | kPoison);
    for (std::size_t row = 0; row < live.size(); ++row) {
      if (live[row]) continue;
      const bool padding = row < used;
      if (padding && !m_.zero_padding) continue;
      if (!padding && options_.own_receive_storage) continue;
      const std::vector<Bf16>& should = padding ? zeros : poisoned;
      if (std::memcmp(&rows[row * hidden], should.data(), hidden * 2) == 0) continue;
      return text("a row of no expert", row, 0, rows[row * hidden], should[0]);
    }
    return {};
  }

  template <typename T>
  static std::string text(const char* name, std::size_t row, std::size_t column, T is, T should) {
    return std::string(name) + " [" + std::to_string(row) + ", " + std::to_string(column) +
           "] is " + std::to_string(is) + ", should be " + std::to_string(should);
  }

  struct Scratch {
    Backend::HostMapped memory;
    std::size_t bytes = 0;
  };

  Group& group_;
  Backend& backend_;
  bundle::Manifest m_;
  WorldOptions options_;
  std::vector<Buffer> buffers_;
  std::vector<void*> memory_;
  std::vector<std::vector<Memory>> slots_;        // [slot][rank]
  std::vector<std::map<int, Received>> tickets_;  // [slot][rank], FFN ranks only
  std::vector<Graph> graphs_;
  std::map<const ExchangeData*, std::vector<std::byte*>> kept_;  // replies on the device, a worker
  std::array<Scratch, 4> scratch_;
};

}  // namespace afdep::exchange_test
