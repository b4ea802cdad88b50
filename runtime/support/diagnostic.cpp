#include "runtime/support/diagnostic.h"

#include <fmt/format.h>

namespace afdep {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text;
  if (diagnostic.place.line > 0) {
    text = fmt::format("{}:{}:{}: ", diagnostic.place.file, diagnostic.place.line,
                       diagnostic.place.column);
  } else if (!diagnostic.place.file.empty()) {
    text = fmt::format("{}: ", diagnostic.place.file);
  }
  text += fmt::format("error[{}]: {}", to_string(diagnostic.code), diagnostic.message);
  if (!diagnostic.note.empty()) text += fmt::format("\n  note: {}", diagnostic.note);
  return text;
}

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) text += to_string(diagnostic) + "\n";
  return text;
}

}  // namespace afdep
