#include "generator/verify/inputs.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <source_location>

#include "runtime/support/check.h"

namespace afdep::verify {
namespace {

constexpr Bf16 kNan = 0x7fc1;
constexpr Bf16 kMinusZero = 0x8000;
constexpr Bf16 kHuge = 0x4c00;  // 2^25: loses what is below 2 beside it

std::size_t size(int n) { return static_cast<std::size_t>(n); }

// `count` distinct numbers of [0, n), in random order.
std::vector<std::int64_t> distinct(int count, int n, Random& random) {
  std::vector<std::int64_t> numbers(size(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = 0; i < count; ++i)
    std::swap(numbers[size(i)], numbers[size(i + random.below(n - i))]);
  numbers.resize(size(count));
  return numbers;
}

// `count` distinct numbers of [0, n), the i-th after `favourite` with a weight of 1 / (i + 1).
std::vector<std::int64_t> skewed(int count, int n, int favourite, Random& random) {
  std::vector<int> until(size(n));  // cumulative weights
  int total = 0;
  for (int i = 0; i < n; ++i) until[size(i)] = total += (1 << 16) / (i + 1);
  std::vector<std::int64_t> numbers;
  while (numbers.size() < size(count)) {
    const int at = random.below(total);
    const auto i = std::ranges::upper_bound(until, at) - until.begin();
    const std::int64_t number = (favourite + i) % n;
    if (std::ranges::find(numbers, number) == numbers.end()) numbers.push_back(number);
  }
  return numbers;
}

// The choices of one token; `favourite` is the worker or expert of the exchange.
std::vector<std::int64_t> choices(const Shape& shape, Routing routing, int favourite,
                                  Random& random) {
  const int local = shape.local_experts();
  std::vector<std::int64_t> ids(size(shape.top_k), -1);
  switch (routing) {
    case Routing::kRandom:
      return distinct(shape.top_k, shape.experts, random);
    case Routing::kOneWorker: {
      const auto chosen = distinct(std::min(shape.top_k, local), local, random);
      for (std::size_t k = 0; k < chosen.size(); ++k)
        ids[k] = favourite % shape.workers * local + chosen[k];
      return ids;
    }
    case Routing::kOneExpert:
      ids[size(random.below(shape.top_k))] = favourite % shape.experts;
      return ids;
    case Routing::kDistinctWorkers: {
      const auto workers = distinct(std::min(shape.top_k, shape.workers), shape.workers, random);
      for (std::size_t k = 0; k < workers.size(); ++k)
        ids[k] = workers[k] * local + random.below(local);
      return ids;
    }
    case Routing::kHoles:
      if (random.one_in(4)) return ids;
      ids = distinct(shape.top_k, shape.experts, random);
      for (std::int64_t& id : ids) id = random.one_in(3) ? -1 : id;
      return ids;
    case Routing::kNothing:
      return ids;
    case Routing::kSkewed:
      return skewed(shape.top_k, shape.experts, favourite, random);
    case Routing::kBadIds:
      ids = distinct(shape.top_k, shape.experts, random);
      if (shape.top_k > 1 && random.one_in(2)) ids.back() = ids.front();
      if (random.one_in(2)) {
        const std::array<std::int64_t, 4> bad{-2, shape.experts, 0x7fffffff, -0x7fffffff};
        ids[size(random.below(shape.top_k))] = bad[size(random.below(4))];
      }
      return ids;
  }
  fail_check("unknown routing", std::source_location::current());
}

}  // namespace

std::string_view to_string(Routing routing) {
  switch (routing) {
    case Routing::kRandom:
      return "random";
    case Routing::kOneWorker:
      return "one worker";
    case Routing::kOneExpert:
      return "one expert";
    case Routing::kDistinctWorkers:
      return "distinct workers";
    case Routing::kHoles:
      return "holes";
    case Routing::kNothing:
      return "nothing";
    case Routing::kSkewed:
      return "skewed";
    case Routing::kBadIds:
      return "bad ids";
  }
  fail_check("unknown routing", std::source_location::current());
}

std::span<const Routing> legal_routings() {
  static constexpr std::array kLegal{
      Routing::kRandom, Routing::kOneWorker,       Routing::kSkewed, Routing::kOneExpert,
      Routing::kHoles,  Routing::kDistinctWorkers, Routing::kNothing};
  return kLegal;
}

SourceInput random_input(const Shape& shape, int tokens, Routing routing, int favourite,
                         Random& random) {
  SourceInput input{.tokens = tokens,
                    .x = std::vector<Bf16>(size(tokens) * size(shape.hidden)),
                    .ids = std::vector<std::int64_t>(size(tokens) * size(shape.top_k)),
                    .weights = std::vector<float>(size(tokens) * size(shape.top_k))};
  refill(shape, routing, favourite, random, input);
  return input;
}

void refill(const Shape& shape, Routing routing, int favourite, Random& random,
            SourceInput& input) {
  for (Bf16& value : input.x) value = static_cast<Bf16>(random.bits() >> 48);
  for (float& weight : input.weights)
    weight = static_cast<float>(1 + random.below(1 << 20)) * 0x1p-20F;
  for (int token = 0; token < input.tokens; ++token) {
    const std::vector<std::int64_t> ids = choices(shape, routing, favourite, random);
    std::ranges::copy(ids, input.ids.begin() + static_cast<std::ptrdiff_t>(token) * shape.top_k);
  }
}

std::vector<Bf16> random_replies(const Shape& shape, const WorkerOutput& received, int rows,
                                 Random& random) {
  const std::size_t hidden = size(shape.hidden);
  std::vector<Bf16> replies(size(rows) * hidden, kNan);
  for (const ReceivedRow& row : received.rows) {
    Bf16* const to = &replies[size(row.row) * hidden];
    for (std::size_t column = 0; column < hidden; ++column) {
      const std::uint64_t bits = random.bits();
      // Exponents near each other, so that rounding shows, and some huge values that cancel each
      // other, so that the order of a sum shows: most sums of a few BF16 are exact in FP32.
      const auto exponent = static_cast<std::uint64_t>(120 + (bits >> 8) % 12);
      auto value = static_cast<Bf16>((bits & 0x807fU) | exponent << 7);
      if (bits >> 62 == 1) value = static_cast<Bf16>((bits & 0x8000U) | kHuge);
      if (bits >> 58 == 0) value = static_cast<Bf16>(bits & 0x807fU);              // 0 or subnormal
      if (bits >> 54 == 1) value = static_cast<Bf16>((bits & 0x8000U) | 0x7f80U);  // infinite
      // Every sum of this column is -0, which only a sum that starts at -0 is.
      if (column + 1 == hidden) value = kMinusZero;
      to[column] = value;
    }
  }
  return replies;
}

}  // namespace afdep::verify
