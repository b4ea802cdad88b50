// What an exchange delivers, value by value, from the contract alone. Independent of the kernels
// and of generator/verify.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/bundle/manifest.h"

namespace afdep::exchange_test {

using Bf16 = std::uint16_t;

inline float widen(Bf16 bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

// To nearest, ties to even. The tests use no NaN.
inline Bf16 narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<Bf16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct Source {
  int tokens = 0;
  std::vector<Bf16> x;            // [tokens, hidden]
  std::vector<std::int64_t> ids;  // [tokens, top_k]
  std::vector<float> weights;     // [tokens, top_k]
};

struct Arrival {
  int source = 0;
  int token = 0;
  int choice = 0;
  std::int64_t row = 0;  // of the worker's receive tensor
};

struct Worker {
  std::vector<std::int32_t> ends, counts;  // an expert
  std::vector<Arrival> arrivals;
};

// An id counts unless it is out of range or repeats an earlier one of its token.
inline bool counts(const bundle::Manifest& m, const Source& source, int token, int choice) {
  const std::int64_t* ids = &source.ids[static_cast<std::size_t>(token * m.top_k)];
  for (int k = 0; k < choice; ++k) {
    if (ids[k] == ids[choice]) return false;
  }
  return ids[choice] >= 0 && ids[choice] < m.experts;
}

// Rows are expert-major; within an expert by source, then token.
inline std::vector<Worker> receive_model(const bundle::Manifest& m,
                                         const std::vector<Source>& sources) {
  std::vector<Worker> workers(static_cast<std::size_t>(m.ffn_ranks));
  for (int expert = 0; expert < m.experts; ++expert) {
    Worker& worker = workers[static_cast<std::size_t>(expert / m.local_experts())];
    const std::int64_t before = worker.ends.empty() ? 0 : worker.ends.back();
    const std::int64_t begin =
        (before + m.expert_alignment - 1) / m.expert_alignment * m.expert_alignment;
    std::int64_t row = begin;
    for (int s = 0; s < m.attention_ranks; ++s) {
      const Source& source = sources[static_cast<std::size_t>(s)];
      for (int t = 0; t < source.tokens; ++t) {
        for (int k = 0; k < m.top_k; ++k) {
          const bool here = source.ids[static_cast<std::size_t>(t * m.top_k + k)] == expert;
          if (here && counts(m, source, t, k)) worker.arrivals.push_back({s, t, k, row++});
        }
      }
    }
    worker.counts.push_back(static_cast<std::int32_t>(row - begin));
    worker.ends.push_back(static_cast<std::int32_t>(row));
  }
  return workers;
}

// out[source]: [tokens, hidden]. A worker adds a token's rows by choice in FP32 and rounds; the
// source adds those sums by worker in FP32 and rounds. A sum starts with its first term; a token
// without experts is zero.
inline std::vector<std::vector<Bf16>> collect_model(const bundle::Manifest& m,
                                                    const std::vector<Source>& sources,
                                                    const std::vector<Worker>& workers,
                                                    const std::vector<std::vector<Bf16>>& replies) {
  const auto hidden = static_cast<std::size_t>(m.hidden);
  std::vector<std::vector<Bf16>> out;
  for (int s = 0; s < m.attention_ranks; ++s) {
    const auto tokens = static_cast<std::size_t>(sources[static_cast<std::size_t>(s)].tokens);
    std::vector<float> total(tokens * hidden);
    std::vector<bool> touched(tokens);
    for (std::size_t w = 0; w < workers.size(); ++w) {
      std::vector<std::vector<std::int64_t>> rows(
          tokens, std::vector<std::int64_t>(static_cast<std::size_t>(m.top_k), -1));
      for (const Arrival& a : workers[w].arrivals) {
        if (a.source != s) continue;
        rows[static_cast<std::size_t>(a.token)][static_cast<std::size_t>(a.choice)] = a.row;
      }
      for (std::size_t t = 0; t < tokens; ++t) {
        std::erase(rows[t], -1);
        if (rows[t].empty()) continue;
        for (std::size_t h = 0; h < hidden; ++h) {
          float partial = widen(replies[w][static_cast<std::size_t>(rows[t][0]) * hidden + h]);
          for (std::size_t i = 1; i < rows[t].size(); ++i) {
            partial += widen(replies[w][static_cast<std::size_t>(rows[t][i]) * hidden + h]);
          }
          const float rounded = widen(narrow(partial));
          float& sum = total[t * hidden + h];
          sum = touched[t] ? sum + rounded : rounded;
        }
        touched[t] = true;
      }
    }
    out.emplace_back();
    for (const float value : total) out.back().push_back(narrow(value));
  }
  return out;
}

}  // namespace afdep::exchange_test
