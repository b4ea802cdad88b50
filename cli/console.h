// What the command line tools say and where: data on stdout, everything else on stderr, exit codes.
#pragma once

#include <cstdio>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>

#include "runtime/support/diagnostic.h"

namespace afdep::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRefused = 1;      // a spec or a verification
inline constexpr int kExitUsage = 2;        // the command line
inline constexpr int kExitEnvironment = 3;  // toolchain, GPU, files
inline constexpr int kExitInternal = 70;    // a bug in afdep

// The exit code of a failure: the environment's if one of them is, since a spec cannot repair it.
int exit_code_of(const Diagnostics& diagnostics);

// [{"code": "E203", "file": ..., "line": ..., "column": ..., "message": ..., "note": ...}, ...] as
// JSON text; a diagnostic without a place has no file, line and column.
std::string diagnostics_to_json(const Diagnostics& diagnostics);

// Prints diagnostics on stderr, and with `json` also {"errors": [...], "ok": false} on stdout.
// Returns exit_code_of.
int report_failure(const Diagnostics& diagnostics, bool json);

// Writes data to stdout. Throws OutputError if stdout cannot take it.
void print_out(std::string_view text);
// Writes a message to stderr.
void print_error(std::string_view text);

struct OutputError {
  int error_number;  // errno
};

// Runs the body of a tool: InternalError or any other exception becomes "internal error" and 70,
// an OutputError a message and 3. Flushes stdout.
int run_guarded(std::string_view tool, const std::function<int()>& body);

}  // namespace afdep::cli
