#include "cli/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>

namespace afdep::cli {

int exit_code_of(const Diagnostics& diagnostics) {
  int code = kExitRefused;
  for (const Diagnostic& diagnostic : diagnostics) {
    code = std::max(code, exit_code(diagnostic.code));
  }
  return code;
}

std::string diagnostics_to_json(const Diagnostics& diagnostics) {
  nlohmann::json errors = nlohmann::json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    nlohmann::json error{{"code", to_string(diagnostic.code)},
                         {"message", diagnostic.message},
                         {"note", diagnostic.note}};
    if (!diagnostic.place.file.empty()) error["file"] = diagnostic.place.file;
    if (diagnostic.place.line > 0) {
      error["line"] = diagnostic.place.line;
      error["column"] = diagnostic.place.column;
    }
    errors.push_back(std::move(error));
  }
  // File names need not be UTF-8: what is not is replaced rather than refused.
  return errors.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

int report_failure(const Diagnostics& diagnostics, bool json) {
  print_error(to_string(diagnostics));
  if (json) {
    const nlohmann::json report{
        {"ok", false}, {"errors", nlohmann::json::parse(diagnostics_to_json(diagnostics))}};
    print_out(report.dump(2) + "\n");
  }
  return exit_code_of(diagnostics);
}

void print_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw OutputError{errno};
}

void print_error(std::string_view text) {
  // Nobody is left to tell if stderr is closed.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

int run_guarded(std::string_view tool, const std::function<int()>& body) {
  try {
    const int code = body();
    if (std::fflush(stdout) != 0) throw OutputError{errno};
    return code;
  } catch (const OutputError& error) {
    print_error(fmt::format("{}: cannot write to standard output: {}\n", tool,
                            std::strerror(error.error_number)));
    return kExitEnvironment;
  } catch (const std::exception& error) {
    print_error(
        fmt::format("{}: internal error: {}\n"
                    "  note: this is a bug in afdep; please report it with the spec\n",
                    tool, error.what()));
  } catch (...) {
    print_error(fmt::format("{}: internal error: unknown exception\n", tool));
  }
  return kExitInternal;
}

}  // namespace afdep::cli
