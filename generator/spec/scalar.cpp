#include "generator/spec/scalar.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

namespace afdep::spec {

std::string described(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "empty";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
    case Node::Kind::kScalar:
    case Node::Kind::kRefused:
      break;
  }
  return node.plain ? shown(node.text) : quoted(node.text);
}

void report_form(const Node& node, std::string_view path, std::string_view expected, Sink& sink) {
  if (node.kind == Node::Kind::kRefused) return;
  // A key has a value; the file and such are what they are.
  const bool scalar = node.kind == Node::Kind::kScalar && path.find(' ') == std::string_view::npos;
  sink.add(ErrorCode::kSpecForm, node.place,
           fmt::format("{} {} {}", path, scalar ? "=" : "is", described(node)) +
               fmt::format(", but {} is expected", expected),
           fmt::format("write {} here", expected));
}

bool is_plain_decimal(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (text == "0") return false;
  }
  if (text.empty() ||
      !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
    return false;
  }
  return text == "0" || text.front() != '0';
}

std::optional<int> read_int(const Node& node, std::string_view path, const Range& range,
                            Sink& sink) {
  if (node.kind != Node::Kind::kScalar) {
    report_form(node, path, "an integer", sink);
    return std::nullopt;
  }
  if (!node.plain) {
    sink.add(ErrorCode::kSpecForm, node.place,
             fmt::format("{} = {} is a quoted string, but an integer is expected", path,
                         quoted(node.text)),
             "remove the quotes");
    return std::nullopt;
  }
  if (!is_plain_decimal(node.text)) {
    sink.add(ErrorCode::kSpecForm, node.place,
             fmt::format("{} = {} is not a plain decimal integer", path, shown(node.text)),
             "write digits only: no sign +, leading zero, underscore, fraction or base prefix");
    return std::nullopt;
  }
  long long value = 0;
  const char* end = node.text.data() + node.text.size();
  if (std::from_chars(node.text.data(), end, value).ec != std::errc{}) {
    // Out of 64 bits, so out of every range on the side of its sign.
    value = node.text.front() == '-' ? std::numeric_limits<long long>::min()
                                     : std::numeric_limits<long long>::max();
  }
  if (value >= range.min && value <= range.max) return static_cast<int>(value);
  const bool above = value > range.max;
  std::string limits = range.min == range.max ? fmt::format("the only value is {}", range.min)
                                              : fmt::format("use {} to {}", range.min, range.max);
  sink.add(above ? range.max_code : range.code, node.place,
           above
               ? fmt::format("{} = {} exceeds its maximum {}", path, shown(node.text), range.max)
               : fmt::format("{} = {} is below its minimum {}", path, shown(node.text), range.min),
           std::move(limits));
  return std::nullopt;
}

std::optional<bool> read_bool(const Node& node, std::string_view path, Sink& sink) {
  if (node.kind == Node::Kind::kScalar && node.plain) {
    if (node.text == "true") return true;
    if (node.text == "false") return false;
  }
  report_form(node, path, "true or false", sink);
  return std::nullopt;
}

std::optional<std::string> read_string(const Node& node, std::string_view path, Sink& sink) {
  if (node.kind == Node::Kind::kScalar) return node.text;
  report_form(node, path, "a string", sink);
  return std::nullopt;
}

}  // namespace afdep::spec
