// What an exchange must do on any backend: data, graphs, faults.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "afdep/generation.h"
#include "tests/gpu/exchange_harness.h"

namespace afdep::exchange_test {

struct Scale {
  int eager_rounds = 20;  // each of several exchanges without a look in between
  int replays = 1000;     // of each graph
};

// Tokens a source, as far as the bundle's buckets of at most 128 hold them.
inline std::vector<int> token_counts(const bundle::Manifest& m) {
  std::vector<int> counts;
  for (const int tokens : {0, 1, 3, 8, 31, 128}) {
    if (tokens <= m.buckets.back().tokens) counts.push_back(tokens);
  }
  return counts;
}

inline int smallest_bucket(const bundle::Manifest& m, int tokens) {
  for (const bundle::Bucket& bucket : m.buckets) {
    if (bucket.tokens >= tokens) return bucket.tokens;
  }
  throw std::runtime_error("no bucket holds " + std::to_string(tokens) + " tokens");
}

inline std::vector<int> equal_tokens(const bundle::Manifest& m, int tokens) {
  return std::vector<int>(static_cast<std::size_t>(m.attention_ranks), tokens);
}

// Any number up to the bucket, often none or all of it.
inline std::vector<int> mixed_tokens(const bundle::Manifest& m, int bucket, Generator& random) {
  std::vector<int> tokens;
  for (int source = 0; source < m.attention_ranks; ++source) {
    const int kind = random.below(4);
    tokens.push_back(kind == 0 ? 0 : kind == 1 ? bucket : random.below(bucket + 1));
  }
  return tokens;
}

inline Routing routing_of(int round) {
  constexpr Routing kAll[] = {Routing::kRandom,    Routing::kHoles,  Routing::kOneExpert,
                              Routing::kOneWorker, Routing::kNobody, Routing::kRandom};
  return kAll[round % 6];
}

inline int random_bucket(const bundle::Manifest& m, Generator& random) {
  std::vector<int> buckets;
  for (const bundle::Bucket& bucket : m.buckets) {
    if (bucket.tokens <= 128) buckets.push_back(bucket.tokens);
  }
  return buckets[static_cast<std::size_t>(random.below(static_cast<int>(buckets.size())))];
}

// Several exchanges, enqueued back to back, of ever new data.
inline void run_eager(Backend& backend, const bundle::Bundle& bundle, const Scale& scale,
                      const std::function<ExchangeData(int round, Generator&)>& next,
                      WorldOptions options = {}) {
  Group group(backend, bundle.manifest().ranks());
  if (!options.own_receive_storage) options.slots = 3;
  World world(group, bundle, options);
  Generator random(1);
  for (int round = 0; round < scale.eager_rounds && !::testing::Test::HasFailure(); ++round) {
    std::vector<ExchangeData> data;
    for (int slot = 0; slot < options.slots; ++slot) {
      data.push_back(next(round * options.slots + slot, random));
      world.fill(slot, data.back());
    }
    for (int slot = 0; slot < options.slots; ++slot) {
      world.enqueue(slot, data[static_cast<std::size_t>(slot)]);
    }
    group.synchronize();
    for (int slot = 0; slot < options.slots; ++slot) {
      const ExchangeData& each = data[static_cast<std::size_t>(slot)];
      world.expect(slot, each,
                   "bucket " + std::to_string(each.bucket) + ", round " + std::to_string(round) +
                       ", slot " + std::to_string(slot));
    }
  }
}

inline void eager_exchanges_of_every_size(Backend& backend, const bundle::Bundle& bundle,
                                          const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  for (const int tokens : token_counts(m)) {
    run_eager(backend, bundle, scale, [&](int round, Generator& random) {
      return random.exchange(m, smallest_bucket(m, tokens), equal_tokens(m, tokens),
                             routing_of(round));
    });
  }
}

inline void eager_exchanges_of_mixed_sizes_and_buckets(Backend& backend,
                                                       const bundle::Bundle& bundle,
                                                       const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  run_eager(backend, bundle, scale, [&](int round, Generator& random) {
    const int bucket = random_bucket(m, random);
    return random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
  });
}

inline void eager_exchanges_into_the_buffers_storage(Backend& backend, const bundle::Bundle& bundle,
                                                     const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  const int bucket = smallest_bucket(m, std::min(8, m.buckets.back().tokens));
  run_eager(backend, bundle, scale,
            [&](int round, Generator& random) {
              return random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
            },
            {.own_receive_storage = true});
}

inline void the_generation_wraps(Backend& backend, const bundle::Bundle& bundle,
                                 const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  const int bucket = m.buckets.front().tokens;
  // Twelve exchanges: generations kLastGeneration - 4, ..., kLastGeneration, 1, ..., 7.
  run_eager(backend, bundle, {.eager_rounds = 4},
            [&](int round, Generator& random) {
              return random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
            },
            {.buffer = {.generation_before_first = kLastGeneration - 5}});
}

// Graphs of two exchanges each; between replays, ids, weights, payload and replies change in place.
inline void run_replays(Backend& backend, const bundle::Bundle& bundle, int replays,
                        const std::vector<std::vector<int>>& tokens,
                        const std::vector<int>& buckets) {
  constexpr int kSets = 4;
  const bundle::Manifest& m = bundle.manifest();
  const int slots = static_cast<int>(buckets.size());
  Group group(backend, m.ranks());
  World world(group, bundle, {.slots = slots});
  Generator random(2);
  std::vector<std::vector<ExchangeData>> sets;  // [set][slot]
  for (int set = 0; set < kSets; ++set) {
    sets.emplace_back();
    for (std::size_t slot = 0; slot < buckets.size(); ++slot) {
      sets.back().push_back(random.exchange(m, buckets[slot], tokens[slot],
                                            routing_of(set + static_cast<int>(slot))));
    }
  }
  for (const std::vector<ExchangeData>& set : sets) {
    for (const ExchangeData& data : set) world.keep(data);
  }
  world.capture(sets.front());
  for (int replay = 0; replay < replays && !::testing::Test::HasFailure(); ++replay) {
    std::vector<const ExchangeData*> chosen;
    for (int slot = 0; slot < slots; ++slot) {
      const auto set = static_cast<std::size_t>(random.below(kSets));
      chosen.push_back(&sets[set][static_cast<std::size_t>(slot)]);
      world.fill(slot, *chosen.back());
    }
    world.replay();
    group.synchronize();
    for (int slot = 0; slot < slots; ++slot) {
      world.expect(slot, *chosen[static_cast<std::size_t>(slot)],
                   "replay " + std::to_string(replay) + ", slot " + std::to_string(slot));
    }
  }
}

inline void graphs_of_every_size(Backend& backend, const bundle::Bundle& bundle,
                                 const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  if (!m.capture) GTEST_SKIP() << m.name << " has graph.mode: off";
  for (const int tokens : token_counts(m)) {
    const int bucket = smallest_bucket(m, tokens);
    const std::vector<int> equal = equal_tokens(m, tokens);
    run_replays(backend, bundle, scale.replays, {equal, equal}, {bucket, bucket});
  }
}

inline void graphs_of_several_buckets(Backend& backend, const bundle::Bundle& bundle,
                                      const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  if (!m.capture) GTEST_SKIP() << m.name << " has graph.mode: off";
  Generator random(3);
  std::vector<int> buckets;
  std::vector<std::vector<int>> tokens;
  for (const bundle::Bucket& bucket : m.buckets) {
    if (bucket.tokens > 32) continue;
    buckets.push_back(bucket.tokens);
    tokens.push_back(mixed_tokens(m, bucket.tokens, random));
  }
  run_replays(backend, bundle, scale.replays / 10 + 1, tokens, buckets);
}

inline void replays_follow_each_other_without_a_look(Backend& backend, const bundle::Bundle& bundle,
                                                     const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  if (!m.capture) GTEST_SKIP() << m.name << " has graph.mode: off";
  const int bucket = m.buckets.front().tokens;
  Group group(backend, m.ranks());
  World world(group, bundle, {});
  Generator random(4);
  const ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
  world.capture({data});
  world.fill(0, data);
  for (int replay = 0; replay < scale.replays; ++replay) world.replay();
  group.synchronize();
  world.expect(0, data, "after " + std::to_string(scale.replays) + " replays");
}

inline void two_buffers_interleave(Backend& backend, const bundle::Bundle& bundle,
                                   const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  Group group(backend, m.ranks());
  World first(group, bundle, {});
  World second(group, bundle, {});
  Generator random(5);
  for (int round = 0; round < scale.eager_rounds && !::testing::Test::HasFailure(); ++round) {
    const int bucket = random_bucket(m, random);
    const ExchangeData a =
        random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
    const ExchangeData b =
        random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round + 1));
    first.fill(0, a);
    second.fill(0, b);
    for (int rank = 0; rank < group.size(); ++rank) {
      first.enqueue_first(0, rank, a);
      second.enqueue_first(0, rank, b);
      first.enqueue_second(0, rank, a);
      second.enqueue_second(0, rank, b);
    }
    group.synchronize();
    first.expect(0, a, "first buffer, round " + std::to_string(round));
    second.expect(0, b, "second buffer, round " + std::to_string(round));
  }
}

inline void a_view_is_the_collected_rows(Backend& backend, const bundle::Bundle& bundle,
                                         const Scale& scale) {
  const bundle::Manifest& m = bundle.manifest();
  if (!m.has_view) GTEST_SKIP() << m.name << " has no view";
  Group group(backend, m.ranks());
  World world(group, bundle, {});
  Generator random(6);
  for (int round = 0; round < scale.eager_rounds && !::testing::Test::HasFailure(); ++round) {
    const int bucket = random_bucket(m, random);
    const ExchangeData data =
        random.exchange(m, bucket, mixed_tokens(m, bucket, random), routing_of(round));
    world.fill(0, data);
    world.enqueue(0, data, /*view=*/round % 3 != 2);
    group.synchronize();
    world.expect(0, data, "round " + std::to_string(round));
  }
}

// Refused ids are reported once by rank, token, choice and value, and travel nowhere.
inline void bad_ids_are_reported(Backend& backend, const bundle::Bundle& bundle,
                                 const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  if (m.route_check != bundle::RouteCheck::kReport) GTEST_SKIP() << "route checks do not report";
  const int bucket = m.buckets.front().tokens;
  Group group(backend, m.ranks());
  World world(group, bundle, {});
  Generator random(7);
  const int rank = m.world_rank(bundle::Role::kAttention, m.attention_ranks - 1);
  std::vector<std::pair<std::int64_t, std::string>> bad = {
      {m.experts, "is neither -1 nor in [0, " + std::to_string(m.experts) + ")"},
      {-2, "is neither -1 nor in [0, " + std::to_string(m.experts) + ")"}};
  if (m.id_type == bundle::IdType::kInt64) {
    // The low half alone would be expert 0.
    bad.emplace_back(std::int64_t{1} << 32, "is neither -1 nor in");
  }
  if (m.top_k > 1) bad.emplace_back(-1, "repeats an earlier choice");  // -1: replaced below
  for (const auto& [value, words] : bad) {
    ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
    Source& source = data.sources.back();
    const std::size_t last = source.ids.size() - 1;
    const std::int64_t id = value == -1 ? source.ids[last - 1] : value;
    source.ids[last] = id;
    random.complete(m, data);
    world.fill(0, data);
    world.enqueue(0, data);
    group.synchronize();
    const Result<void> report = world.buffer(rank).check();
    ASSERT_FALSE(report.ok()) << "id " << id << " was not reported";
    EXPECT_EQ(report.diagnostics().front().code, ErrorCode::kRouteId);
    EXPECT_THAT(
        report.diagnostics().front().message,
        ::testing::AllOf(
            ::testing::HasSubstr("rank " + std::to_string(rank) + " (attention " +
                                 std::to_string(m.attention_ranks - 1) + "): expert id " +
                                 std::to_string(id) + " of token " + std::to_string(bucket - 1) +
                                 ", choice " + std::to_string(m.top_k - 1)),
            ::testing::HasSubstr(words)));
    world.expect(0, data, "with id " + std::to_string(id));
  }
}

constexpr BufferOptions kImpatient{.device_timeout = std::chrono::milliseconds(20)};

inline void usable_afterwards(Backend& backend, const bundle::Bundle& bundle) {
  const bundle::Manifest& m = bundle.manifest();
  run_eager(backend, bundle, {.eager_rounds = 1}, [&](int round, Generator& random) {
    const int bucket = m.buckets.front().tokens;
    return random.exchange(m, bucket, equal_tokens(m, bucket), routing_of(round));
  });
}

// A worker that never launches: the sources say whom they waited for.
inline void a_late_worker_is_named(Backend& backend, const bundle::Bundle& bundle,
                                   const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  {
    Group group(backend, m.ranks());
    World world(group, bundle, {.buffer = kImpatient});
    Generator random(8);
    const int bucket = m.buckets.front().tokens;
    ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kRandom);
    // Every token needs the late worker's first expert.
    const int late = m.ffn_ranks - 1;
    for (Source& source : data.sources) {
      for (int token = 0; token < source.tokens; ++token) {
        const auto first = static_cast<std::size_t>(token * m.top_k);
        std::fill_n(source.ids.begin() + static_cast<std::ptrdiff_t>(first), m.top_k, -1);
        source.ids[first] = std::int64_t{late} * m.local_experts();
      }
    }
    random.complete(m, data);
    world.fill(0, data);
    for (int rank = 0; rank < group.size(); ++rank) {
      if (rank == m.world_rank(bundle::Role::kFfn, late)) continue;
      world.enqueue_first(0, rank, data);
      world.enqueue_second(0, rank, data);
    }
    group.synchronize();
    for (int i = 0; i < m.attention_ranks; ++i) {
      const int rank = m.world_rank(bundle::Role::kAttention, i);
      const Result<void> report = world.buffer(rank).check();
      ASSERT_FALSE(report.ok());
      EXPECT_EQ(report.diagnostics().front().code, ErrorCode::kWaitTimedOut);
      EXPECT_THAT(report.diagnostics().front().message,
                  ::testing::HasSubstr("rank " + std::to_string(rank) + " (attention " +
                                       std::to_string(i) + ") waited 20 ms in collect for worker " +
                                       std::to_string(late) + "'s reply to token "));
      EXPECT_EQ(world.buffer(rank).check().diagnostics().front().code, ErrorCode::kAborted);
    }
  }
  usable_afterwards(backend, bundle);
}

// A source that never dispatches: the workers say whom they waited for.
inline void a_late_source_is_named(Backend& backend, const bundle::Bundle& bundle,
                                   const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  {
    Group group(backend, m.ranks());
    World world(group, bundle, {.buffer = kImpatient});
    Generator random(9);
    const int bucket = m.buckets.front().tokens;
    const ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kNobody);
    world.fill(0, data);
    for (int i = 0; i < m.ffn_ranks; ++i) {
      world.enqueue_first(0, m.world_rank(bundle::Role::kFfn, i), data);
    }
    for (int i = 1; i < m.attention_ranks; ++i) {
      const int rank = m.world_rank(bundle::Role::kAttention, i);
      world.enqueue_first(0, rank, data);
      world.enqueue_second(0, rank, data);
    }
    group.synchronize();
    for (int i = 0; i < m.ffn_ranks; ++i) {
      const int rank = m.world_rank(bundle::Role::kFfn, i);
      const Result<void> report = world.buffer(rank).check();
      ASSERT_FALSE(report.ok());
      EXPECT_THAT(report.diagnostics().front().message,
                  ::testing::HasSubstr("(ffn " + std::to_string(i) +
                                       ") waited 20 ms in receive for attention 0's top-k table"));
    }
  }
  usable_afterwards(backend, bundle);
}

// Ends a wait that has no time limit to speak of.
inline void abort_ends_a_wait(Backend& backend, const bundle::Bundle& bundle,
                              const Scale& /*scale*/) {
  const bundle::Manifest& m = bundle.manifest();
  {
    Group group(backend, m.ranks());
    World world(group, bundle, {.buffer = {.device_timeout = std::chrono::milliseconds(600'000)}});
    Generator random(10);
    const int bucket = m.buckets.front().tokens;
    const ExchangeData data = random.exchange(m, bucket, equal_tokens(m, bucket), Routing::kNobody);
    world.fill(0, data);
    const int rank = m.world_rank(bundle::Role::kFfn, 0);
    world.enqueue_first(0, rank, data);
    require(world.buffer(rank).abort());
    group.synchronize();
    EXPECT_EQ(world.buffer(rank).check().diagnostics().front().code, ErrorCode::kAborted);
    EXPECT_TRUE(world.buffer(rank).close().ok());
  }
  usable_afterwards(backend, bundle);
}

}  // namespace afdep::exchange_test
