// Broken invariants: a bug in afdep, never the caller's mistake.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace afdep {

// what() is "file:line: function: message". The command line tools turn it into exit code 70.
class InternalError : public std::logic_error {
 public:
  InternalError(const std::string& message, const std::source_location& where)
      : std::logic_error(std::string(where.file_name()) + ":" + std::to_string(where.line()) +
                         ": " + where.function_name() + ": " + message) {}
};

[[noreturn]] inline void fail_check(const std::string& message, const std::source_location& where) {
  throw InternalError(message, where);
}

}  // namespace afdep

// Throws InternalError unless the condition holds. The message is built only on failure.
#define AFDEP_CHECK(condition, message)                                                \
  do {                                                                                 \
    if (!(condition)) ::afdep::fail_check((message), std::source_location::current()); \
  } while (false)
