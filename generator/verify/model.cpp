#include "generator/verify/model.h"

#include <bit>
#include <cmath>
#include <map>
#include <utility>

namespace afdep::verify {
namespace {

// Adding x to it gives x for every x, so the sum of one row is that row, -0 included.
constexpr float kNothing = -0.0F;

bool counts(const Shape& shape, const SourceInput& input, int token, int choice) {
  const std::int64_t* ids =
      &input.ids[static_cast<std::size_t>(token) * static_cast<std::size_t>(shape.top_k)];
  for (int earlier = 0; earlier < choice; ++earlier) {
    if (ids[earlier] == ids[choice]) return false;
  }
  return ids[choice] >= 0 && ids[choice] < shape.experts;
}

}  // namespace

std::vector<WorkerOutput> receive_model(const Shape& shape,
                                        const std::vector<SourceInput>& inputs) {
  std::vector<std::vector<ReceivedRow>> by_expert(static_cast<std::size_t>(shape.experts));
  for (int source = 0; source < shape.sources; ++source) {
    const SourceInput& input = inputs[static_cast<std::size_t>(source)];
    for (int token = 0; token < input.tokens; ++token) {
      for (int choice = 0; choice < shape.top_k; ++choice) {
        if (!counts(shape, input, token, choice)) continue;
        const std::int64_t expert =
            input.ids[static_cast<std::size_t>(token * shape.top_k + choice)];
        by_expert[static_cast<std::size_t>(expert)].push_back({0, source, token, choice});
      }
    }
  }
  std::vector<WorkerOutput> workers(static_cast<std::size_t>(shape.workers));
  for (int expert = 0; expert < shape.experts; ++expert) {
    WorkerOutput& worker = workers[static_cast<std::size_t>(expert / shape.local_experts())];
    int row = worker.rows_used();
    while (row % shape.alignment != 0) ++row;
    for (ReceivedRow received : by_expert[static_cast<std::size_t>(expert)]) {
      received.row = row++;
      worker.rows.push_back(received);
    }
    worker.counts.push_back(
        static_cast<std::int32_t>(by_expert[static_cast<std::size_t>(expert)].size()));
    worker.ends.push_back(row);
  }
  return workers;
}

std::vector<std::vector<Bf16>> collect_model(const Shape& shape,
                                             const std::vector<SourceInput>& inputs,
                                             const std::vector<WorkerOutput>& received,
                                             const std::vector<std::vector<Bf16>>& replies) {
  const auto hidden = static_cast<std::size_t>(shape.hidden);
  std::vector<std::vector<Bf16>> out;
  for (const SourceInput& input : inputs) {
    out.emplace_back(static_cast<std::size_t>(input.tokens) * hidden, Bf16{0});
  }
  // (source, token) -> worker -> choice -> reply row, each level in ascending order.
  std::map<std::pair<int, int>, std::map<int, std::map<int, const Bf16*>>> tokens;
  for (int worker = 0; worker < shape.workers; ++worker) {
    for (const ReceivedRow& row : received[static_cast<std::size_t>(worker)].rows) {
      tokens[{row.source, row.token}][worker][row.choice] =
          &replies[static_cast<std::size_t>(worker)][static_cast<std::size_t>(row.row) * hidden];
    }
  }
  std::vector<std::vector<const Bf16*>> replied;  // by worker, in the order of their sum
  for (const auto& [token, workers] : tokens) {
    replied.clear();
    for (const auto& [worker, rows] : workers) {
      replied.emplace_back();
      for (const auto& [choice, row] : rows) replied.back().push_back(row);
    }
    Bf16* to = &out[static_cast<std::size_t>(token.first)]
                   [static_cast<std::size_t>(token.second) * hidden];
    for (std::size_t column = 0; column < hidden; ++column) {
      float sum = kNothing;
      for (const std::vector<const Bf16*>& rows : replied) {
        float partial = kNothing;
        for (const Bf16* const row : rows) partial += to_float(row[column]);
        sum += to_float(to_bf16(partial));
      }
      to[column] = to_bf16(sum);
    }
  }
  return out;
}

float to_float(Bf16 bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

Bf16 to_bf16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rest = bits & 0xffffU;
  const std::uint32_t kept = bits >> 16;
  const bool up = rest > 0x8000U || (rest == 0x8000U && (kept & 1U) != 0);
  return static_cast<Bf16>(kept + (up ? 1U : 0U));
}

}  // namespace afdep::verify
