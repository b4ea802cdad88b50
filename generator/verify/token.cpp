#include "generator/verify/token.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstddef>
#include <optional>

namespace afdep::verify {
namespace {

constexpr std::string_view kPrefix = "r1.";
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::size_t kMaxChoices = 1 << 20;

std::uint32_t checksum(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t sum = 0x811c9dc5U;  // FNV-1a
  for (const std::uint8_t byte : bytes) sum = (sum ^ byte) * 0x01000193U;
  return sum;
}

class Writer {
 public:
  // Seven bits a byte, low ones first; the top bit says that more follow.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void text(std::string_view value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  // Runs of equal numbers: a schedule stays with a warp as long as it can.
  void runs(const std::vector<std::uint32_t>& values) {
    number(values.size());
    for (std::size_t i = 0; i < values.size();) {
      std::size_t end = i + 1;
      while (end < values.size() && values[end] == values[i]) ++end;
      number(values[i]);
      number(end - i);
      i = end;
    }
  }
  std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<std::uint8_t> bytes_;
};

class Reader {
 public:
  explicit Reader(const std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == bytes_.size()) break;
      const std::uint8_t byte = bytes_[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  int small() {
    const std::uint64_t value = number();
    if (value > INT32_MAX) good_ = false;
    return good_ ? static_cast<int>(value) : 0;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (!good_ || size > bytes_.size() - at_) {
      good_ = false;
      return {};
    }
    const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(at_);
    at_ += size;
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }
  std::vector<std::uint32_t> runs() {
    std::vector<std::uint32_t> values;
    const std::uint64_t size = number();
    if (size > kMaxChoices) good_ = false;
    while (good_ && values.size() < size) {
      const std::uint64_t value = number();
      const std::uint64_t count = number();
      if (value > UINT32_MAX || count == 0 || count > size - values.size()) good_ = false;
      if (good_) values.insert(values.end(), count, static_cast<std::uint32_t>(value));
    }
    return values;
  }
  [[nodiscard]] bool at_end() const { return good_ && at_ == bytes_.size(); }

 private:
  const std::vector<std::uint8_t>& bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

std::string to_digits(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (const std::uint8_t byte : bytes) {
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63U];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63U];
  return text;
}

std::optional<std::vector<std::uint8_t>> from_digits(std::string_view text) {
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char digit : text) {
    const std::size_t value = kDigits.find(digit);
    if (value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return bytes;
}

}  // namespace

std::string encode(const Token& token) {
  Writer writer;
  writer.text(token.version);
  writer.text(token.spec_digest);
  writer.number(token.explore);
  writer.number(token.seed);
  writer.number(static_cast<std::uint64_t>(token.bucket));
  writer.number((token.true_size ? 1U : 0U) | (token.faults ? 2U : 0U) | (token.whole ? 4U : 0U));
  for (const int value : {token.attention_ranks, token.ffn_ranks, token.tokens, token.exchanges,
                          token.search, token.fill}) {
    writer.number(static_cast<std::uint64_t>(value));
  }
  writer.number(token.trace);
  writer.runs(token.choices);
  std::vector<std::uint8_t> bytes = writer.take();
  const std::uint32_t sum = checksum(bytes);
  for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(sum >> 8 * i));
  return std::string(kPrefix) + to_digits(bytes);
}

Result<Token> decode(std::string_view text) {
  const Failure damaged(
      ErrorCode::kVerification,
      fmt::format("--replay: \"{}\" is no token, or a part of one",
                  text.size() > 40 ? std::string(text.substr(0, 40)) + "..." : std::string(text)),
      "copy the whole word behind --replay from the report of the failure");
  if (!text.starts_with(kPrefix)) return damaged;
  std::optional<std::vector<std::uint8_t>> bytes = from_digits(text.substr(kPrefix.size()));
  if (!bytes || bytes->size() < 4) return damaged;
  std::uint32_t sum = 0;
  for (int i = 3; i >= 0; --i) {
    sum |= static_cast<std::uint32_t>(bytes->back()) << 8 * i;
    bytes->pop_back();
  }
  if (sum != checksum(*bytes)) return damaged;
  Reader reader(*bytes);
  Token token;
  token.version = reader.text();
  token.spec_digest = reader.text();
  token.explore = static_cast<std::uint8_t>(reader.small());
  token.seed = reader.number();
  token.bucket = reader.small();
  const int flags = reader.small();
  token.true_size = (flags & 1) != 0;
  token.faults = (flags & 2) != 0;
  token.whole = (flags & 4) != 0;
  for (int* const value : {&token.attention_ranks, &token.ffn_ranks, &token.tokens,
                           &token.exchanges, &token.search, &token.fill}) {
    *value = reader.small();
  }
  token.trace = reader.number();
  token.choices = reader.runs();
  if (!reader.at_end()) return damaged;
  return token;
}

Result<void> check_token(const Token& token, std::string_view version, std::string_view spec_digest,
                         const std::string& file) {
  if (token.version != version) {
    return Failure(
        ErrorCode::kVersionSkew,
        fmt::format("--replay: the token is of afdep {}, this is {}", token.version, version),
        "replay it with that version, or verify again");
  }
  if (token.spec_digest != spec_digest) {
    return Failure({ErrorCode::kVersionSkew,
                    {file, 0, 0},
                    fmt::format("--replay: the token is of another spec: its digest is {}, that of "
                                "this one is {}",
                                token.spec_digest, spec_digest),
                    "name the spec that the token was printed for, unchanged"});
  }
  return {};
}

}  // namespace afdep::verify
