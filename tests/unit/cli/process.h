// Runs a program and keeps what it said.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace afdep::testing {

struct Finished {
  int code = -1;  // exit code; -1 if it was ended by a signal
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::string input = {};                             // of stdin
  std::map<std::string, std::string> variables = {};  // set over this process's environment
  std::string out_path = {};                          // stdout goes to this file instead
  std::string folder = {};                            // working directory; empty: this process's
  long file_limit_bytes = -1;                         // RLIMIT_FSIZE; -1: none
};

Finished run(const std::vector<std::string>& command, const ProcessOptions& options = {});

}  // namespace afdep::testing
