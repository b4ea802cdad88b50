// Random exchanges: inputs, replies and what must come of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/gpu/scalar_model.h"

namespace afdep::exchange_test {

enum class Routing : std::uint8_t {
  kRandom,     // distinct experts
  kHoles,      // some choices are -1
  kOneExpert,  // every token to the same expert, other choices -1
  kOneWorker,  // every token to one worker's experts
  kNobody,     // all -1
};

// One exchange, complete.
struct ExchangeData {
  int bucket = 0;
  std::vector<Source> sources;
  std::vector<std::vector<Bf16>> replies;  // a worker: [receive_rows, hidden]
  std::vector<Worker> received;            // expected
  std::vector<std::vector<Bf16>> out;      // expected
};

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : engine_(seed), pool_(kPool) {
    for (Bf16& value : pool_) {
      const std::uint64_t bits = engine_();
      const auto exponent = static_cast<Bf16>(123 + bits % 9);
      value = static_cast<Bf16>((bits >> 16 & 0x8000) | exponent << 7 | (bits >> 40 & 0x7f));
    }
  }

  int below(int limit) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(limit)); }

  // Normal numbers of magnitude 2^-4 to 2^4, so that sums round but never overflow, and no sum is
  // -0. In pieces from anywhere in the pool: no two rows are alike, and hundreds of megabytes cost
  // no more than copying them.
  std::vector<Bf16> values(std::size_t count) {
    constexpr std::size_t kPiece = 509;  // a prime: pieces and rows never line up
    std::vector<Bf16> result;
    result.reserve(count);
    while (result.size() < count) {
      const std::size_t piece = std::min(kPiece, count - result.size());
      const auto first = pool_.begin() + below(static_cast<int>(kPool - kPiece));
      result.insert(result.end(), first, first + static_cast<std::ptrdiff_t>(piece));
    }
    return result;
  }

  ExchangeData exchange(const bundle::Manifest& m, int bucket, const std::vector<int>& tokens,
                        Routing routing) {
    ExchangeData data;
    data.bucket = bucket;
    const int favourite = below(m.experts);
    for (const int count : tokens) {
      Source source;
      source.tokens = count;
      source.x = values(static_cast<std::size_t>(count) * static_cast<std::size_t>(m.hidden));
      for (int t = 0; t < count; ++t) {
        for (const std::int64_t id : route(m, routing, favourite)) source.ids.push_back(id);
      }
      for (std::size_t i = 0; i < source.ids.size(); ++i) {
        source.weights.push_back(static_cast<float>(1 + below(1 << 20)) / (1 << 20));
      }
      data.sources.push_back(std::move(source));
    }
    complete(m, data);
    return data;
  }

  // Replies and expectations for the sources as they are.
  void complete(const bundle::Manifest& m, ExchangeData& data) {
    const std::int64_t rows = m.find_bucket(data.bucket)->receive_rows;
    data.replies.clear();
    for (int worker = 0; worker < m.ffn_ranks; ++worker) {
      data.replies.push_back(
          values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(m.hidden)));
    }
    data.received = receive_model(m, data.sources);
    data.out = collect_model(m, data.sources, data.received, data.replies);
  }

 private:
  std::vector<std::int64_t> route(const bundle::Manifest& m, Routing routing, int favourite) {
    const auto k = static_cast<std::size_t>(m.top_k);
    std::vector<std::int64_t> ids(k, -1);
    if (routing == Routing::kNobody) return ids;
    if (routing == Routing::kOneExpert) {
      ids[static_cast<std::size_t>(below(m.top_k))] = favourite;
      return ids;
    }
    const bool one_worker = routing == Routing::kOneWorker;
    const int count = one_worker ? m.local_experts() : m.experts;
    const int first = one_worker ? favourite / count * count : 0;
    std::vector<std::int64_t> pool(static_cast<std::size_t>(count));
    std::iota(pool.begin(), pool.end(), first);
    std::shuffle(pool.begin(), pool.end(), engine_);
    std::copy_n(pool.begin(), std::min(k, pool.size()), ids.begin());
    if (routing == Routing::kHoles) {
      for (std::int64_t& id : ids) {
        if (below(3) == 0) id = -1;
      }
    }
    return ids;
  }

  static constexpr std::size_t kPool = 1 << 18;
  std::mt19937_64 engine_;
  std::vector<Bf16> pool_;
};

}  // namespace afdep::exchange_test
