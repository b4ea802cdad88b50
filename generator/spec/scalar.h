// One scalar of a spec file to a number, boolean or word, with the errors of its form.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "generator/spec/node.h"
#include "generator/spec/sink.h"

namespace afdep::spec {

// The range that a value must keep, and the code that refuses it.
struct Range {
  ErrorCode code;
  long long min;
  long long max;
  ErrorCode max_code;  // above the maximum
};

// "a list", "a mapping", "nothing" or the quoted text: what stands where something else was
// expected.
std::string described(const Node& node);

// E002 "`path` is ...; EXPECTED is expected". Silent for a node that was refused already.
void report_form(const Node& node, std::string_view path, std::string_view expected, Sink& sink);

// The readers below report and return nothing if the node does not hold what they read.

// A plain decimal integer in the range: no quotes, plus sign, leading zero, underscore or base
// prefix.
std::optional<int> read_int(const Node& node, std::string_view path, const Range& range,
                            Sink& sink);

// Plain `true` or `false`.
std::optional<bool> read_bool(const Node& node, std::string_view path, Sink& sink);

// Any scalar's text.
std::optional<std::string> read_string(const Node& node, std::string_view path, Sink& sink);

// -?(0|[1-9][0-9]*), without "-0".
bool is_plain_decimal(std::string_view text);

}  // namespace afdep::spec
