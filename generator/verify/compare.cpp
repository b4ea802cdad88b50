// World::compare: what every rank delivered against the case, bit for bit.
#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "generator/verify/slot_memory.h"
#include "generator/verify/world.h"

namespace afdep::verify {
namespace {

constexpr std::size_t kMaxLines = 10;

// One tensor as read back, with its guards.
class Seen {
 public:
  explicit Seen(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  [[nodiscard]] T at(std::size_t index) const {
    T value;
    std::memcpy(&value, &bytes_[kGuardBytes + index * sizeof(T)], sizeof(T));
    return value;
  }
  // Whether values [index, index + expected.size()) are these, bit for bit.
  template <typename T>
  [[nodiscard]] bool equal(std::size_t index, std::span<const T> expected) const {
    return std::memcmp(&bytes_[kGuardBytes + index * sizeof(T)], expected.data(),
                       expected.size_bytes()) == 0;
  }
  // True if bytes [begin, end) of the tensor are still poison; the guards are at negative offsets
  // and behind the last byte.
  [[nodiscard]] bool poisoned(std::ptrdiff_t begin, std::ptrdiff_t end) const {
    return all(begin, end, kPoison);
  }
  [[nodiscard]] bool zero(std::ptrdiff_t begin, std::ptrdiff_t end) const {
    return all(begin, end, 0);
  }
  [[nodiscard]] std::ptrdiff_t size() const {
    return static_cast<std::ptrdiff_t>(bytes_.size() - 2 * kGuardBytes);
  }

 private:
  [[nodiscard]] bool all(std::ptrdiff_t begin, std::ptrdiff_t end, std::uint8_t value) const {
    if (begin >= end) return true;
    const std::uint8_t* const first = bytes_.data() + begin + std::ptrdiff_t{kGuardBytes};
    // Each byte equals the one before it.
    return *first == value &&
           std::memcmp(first, first + 1, static_cast<std::size_t>(end - begin) - 1) == 0;
  }

  std::vector<std::uint8_t> bytes_;
};

class Comparison {
 public:
  Comparison(Backend& backend, const bundle::Manifest& manifest, const Shape& shape, Tally& tally)
      : backend_(backend), manifest_(manifest), shape_(shape), tally_(tally) {}

  Result<void> worker(int index, const Slot::Worker& memory, const WorkerOutput& expected) {
    who_ = fmt::format("FFN {}", index);
    const Result<Seen> rows = read_back(memory.rows);
    const Result<Seen> weights = read_back(memory.row_weights);
    const Result<Seen> ends = read_back(memory.ends);
    const Result<Seen> counts = read_back(memory.counts);
    for (const Result<Seen>* each : {&rows, &weights, &ends, &counts}) {
      if (!each->ok()) return each->failure();
    }

    for (std::size_t e = 0; e < expected.ends.size(); ++e) {
      same(fmt::format("ends[{}]", e), ends->at<std::int32_t>(e), expected.ends[e]);
      same(fmt::format("counts[{}]", e), counts->at<std::int32_t>(e), expected.counts[e]);
    }
    const auto hidden = static_cast<std::size_t>(shape_.hidden);
    for (const ReceivedRow& row : expected.rows) {
      const SourceInput& input = (*inputs_)[static_cast<std::size_t>(row.source)];
      const auto token = static_cast<std::size_t>(row.token);
      const auto at = static_cast<std::size_t>(row.row);
      same_row(*rows, at * hidden, std::span(input.x).subspan(token * hidden, hidden),
               [&](std::size_t column) {
                 return fmt::format("row {} (token {} of attention {}), element {}", row.row,
                                    row.token, row.source, column);
               });
      const float weight = input.weights[token * static_cast<std::size_t>(shape_.top_k) +
                                         static_cast<std::size_t>(row.choice)];
      std::uint32_t bits = 0;
      std::memcpy(&bits, &weight, sizeof(bits));
      same(fmt::format("weight of row {}", row.row), weights->at<std::uint32_t>(at), bits);
      ++tally_.rows;
    }
    padding(*rows, *weights, expected);
    return {};
  }

  Result<void> source(int index, const Slot::Source& memory, bool view, int tokens,
                      const std::vector<Bf16>& expected) {
    who_ = fmt::format("attention {}", index);
    const auto hidden = static_cast<std::size_t>(shape_.hidden);
    const auto count = static_cast<std::size_t>(tokens);
    const Result<Seen> out = read_back(memory.out);
    if (!out.ok()) return out.failure();
    Seen viewed({});
    if (view) {
      std::vector<std::uint8_t> rows(2 * kGuardBytes + count * hidden * sizeof(Bf16));
      const auto stride = static_cast<std::size_t>(memory.collected.stride[0]);
      for (std::size_t token = 0; token < count; ++token) {
        AFDEP_RETURN_IF_FAILED(
            backend_.copy_to_host(&rows[kGuardBytes + token * hidden * sizeof(Bf16)],
                                  static_cast<const Bf16*>(memory.collected.data) + token * stride,
                                  hidden * sizeof(Bf16)));
      }
      viewed = Seen(std::move(rows));
    }
    for (std::size_t token = 0; token < count; ++token) {
      same_row(view ? viewed : *out, token * hidden,
               std::span(expected).subspan(token * hidden, hidden), [&](std::size_t column) {
                 return fmt::format("output of token {}, element {}", token, column);
               });
    }
    const auto written = view ? 0 : static_cast<std::ptrdiff_t>(count * hidden * sizeof(Bf16));
    if (!out->poisoned(written, out->size())) complain("output behind the last token was written");
    return {};
  }

  // Inputs must be what they were.
  Result<void> untouched(const std::string& who, const std::string& what, const Guarded& memory,
                         std::span<const std::byte> expected) {
    who_ = who;
    const Result<std::vector<std::uint8_t>> bytes = read(backend_, memory);
    if (!bytes.ok()) return bytes.failure();
    if (!expected.empty() &&
        std::memcmp(bytes->data() + kGuardBytes, expected.data(), expected.size()) != 0) {
      complain(what + " was written, which only the caller may do");
    }
    return {};
  }

  void set_inputs(const std::vector<SourceInput>& inputs) { inputs_ = &inputs; }
  [[nodiscard]] std::vector<std::string> take() { return std::move(lines_); }

 private:
  Result<Seen> read_back(const Guarded& memory) {
    Result<std::vector<std::uint8_t>> bytes = read(backend_, memory);
    if (!bytes.ok()) return bytes.failure();
    Seen seen(std::move(*bytes));
    const auto guard = static_cast<std::ptrdiff_t>(kGuardBytes);
    if (!seen.poisoned(-guard, 0) || !seen.poisoned(seen.size(), seen.size() + guard)) {
      complain("memory beside a tensor was written");
    }
    return seen;
  }

  // Rows of no token: zero between an expert's last row and its aligned end if the plan says so,
  // untouched otherwise.
  void padding(const Seen& rows, const Seen& weights, const WorkerOutput& expected) {
    const auto row_bytes = static_cast<std::ptrdiff_t>(manifest_.row_bytes);
    const std::ptrdiff_t all = rows.size() / row_bytes;
    std::ptrdiff_t row = 0;
    for (std::size_t e = 0; e < expected.ends.size(); ++e) {
      const std::ptrdiff_t live_end = expected.ends[e];
      const std::ptrdiff_t begin = row;
      row = (live_end + shape_.alignment - 1) / shape_.alignment * shape_.alignment;
      if (live_end - begin != expected.counts[e]) complain("the model contradicts itself");
      for (std::ptrdiff_t pad = live_end; pad < row && pad < all; ++pad) {
        const bool right = manifest_.zero_padding
                               ? rows.zero(pad * row_bytes, (pad + 1) * row_bytes) &&
                                     weights.zero(pad * 4, pad * 4 + 4)
                               : rows.poisoned(pad * row_bytes, (pad + 1) * row_bytes) &&
                                     weights.poisoned(pad * 4, pad * 4 + 4);
        ++tally_.values;
        if (!right) {
          complain(fmt::format("padding row {} is not {}", pad,
                               manifest_.zero_padding ? "zero" : "as it was"));
        }
      }
    }
    if (row < all && !(rows.poisoned(row * row_bytes, rows.size()) &&
                       weights.poisoned(row * 4, weights.size()))) {
      complain(fmt::format("rows behind the last expert's end, {}, were written", row));
    }
  }

  // Values from `index` on are `expected`; `what` names the one in a column.
  template <typename What>
  void same_row(const Seen& seen, std::size_t index, std::span<const Bf16> expected,
                const What& what) {
    if (seen.equal(index, expected)) {
      tally_.values += static_cast<std::int64_t>(expected.size());
      return;
    }
    for (std::size_t column = 0; column < expected.size(); ++column) {
      same_lazy(seen.at<Bf16>(index + column), expected[column], [&] { return what(column); });
    }
  }
  template <typename T>
  void same(const std::string& what, T seen, T expected) {
    same_lazy(seen, expected, [&] { return what; });
  }
  template <typename T, typename What>
  void same_lazy(T seen, T expected, const What& what) {
    ++tally_.values;
    if (seen == expected) return;
    complain(fmt::format("{} is {:#x}, expected {:#x}", what(), seen, expected));
  }
  void complain(const std::string& what) {
    if (lines_.size() < kMaxLines) lines_.push_back(who_ + ": " + what);
  }

  Backend& backend_;
  const bundle::Manifest& manifest_;
  const Shape& shape_;
  Tally& tally_;
  const std::vector<SourceInput>* inputs_ = nullptr;
  std::string who_;
  std::vector<std::string> lines_;
};

}  // namespace

Result<std::vector<std::string>> World::compare(const Slot& slot, const ExchangeCase& exchange) {
  Comparison comparison(backend_, manifest_, shape_, tally_);
  comparison.set_inputs(exchange.inputs);
  for (int w = 0; w < shape_.workers; ++w) {
    const auto index = static_cast<std::size_t>(w);
    AFDEP_RETURN_IF_FAILED(comparison.worker(w, slot.workers[index], exchange.received[index]));
    AFDEP_RETURN_IF_FAILED(comparison.untouched(fmt::format("FFN {}", w), "the reply tensor",
                                                slot.workers[index].replies,
                                                bytes_of(exchange.replies[index])));
  }
  for (int s = 0; s < shape_.sources; ++s) {
    const auto index = static_cast<std::size_t>(s);
    AFDEP_RETURN_IF_FAILED(comparison.source(s, slot.sources[index], slot.view,
                                             exchange.inputs[index].tokens,
                                             exchange.collected[index]));
    AFDEP_RETURN_IF_FAILED(comparison.untouched(fmt::format("attention {}", s), "x",
                                                slot.sources[index].x,
                                                bytes_of(exchange.inputs[index].x)));
  }
  return comparison.take();
}

}  // namespace afdep::verify
