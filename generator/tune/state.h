// What was measured so far: survives an interruption in a file beside the output.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::tune {

// Measurements of one identity may be mixed, others not.
struct Identity {
  std::string spec_digest;
  std::string generator;  // version
  std::string gpu;
  std::string driver;
  std::string method;  // everything else that a time depends on, as one line

  friend bool operator==(const Identity&, const Identity&) = default;
};

struct State {
  Identity identity;
  std::map<std::string, std::vector<double>> samples;  // arm -> us an exchange, a repeat each
  std::map<std::string, std::string> refused;          // arm -> why it cannot run here

  friend bool operator==(const State&, const State&) = default;
};

std::string to_text(const State& state);  // JSON

// E803 if the text is damaged, or if it is of another identity: the message names what differs and
// both values. `file` is for messages.
Result<State> read_state(std::string_view text, const std::string& file, const Identity& identity);

}  // namespace afdep::tune
