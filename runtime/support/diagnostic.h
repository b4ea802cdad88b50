// What went wrong, where, with which value and limit, and what to change.
#pragma once

#include <string>
#include <vector>

#include "runtime/support/error_code.h"

namespace afdep {

// A position in a text file, 1-based; line 0 means that the diagnostic concerns no place in a file.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;

  friend bool operator==(const Place&, const Place&) = default;
};

struct Diagnostic {
  ErrorCode code = ErrorCode::kSpecForm;
  Place place;
  std::string message;  // names the key or call, its value and the limit it breaks
  std::string note;     // the remedy; empty only if the message already says it

  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

using Diagnostics = std::vector<Diagnostic>;

// "file:line:col: error[E203]: message" and, on a second line, "  note: remedy".
std::string to_string(const Diagnostic& diagnostic);

// One after another, each ending in a newline.
std::string to_string(const Diagnostics& diagnostics);

}  // namespace afdep
