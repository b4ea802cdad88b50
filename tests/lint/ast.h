// Parses text with Clang, from memory alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/support/diagnostic.h"

namespace clang {
class ASTContext;
}

namespace afdep::lint {

struct Finding {
  Place place;
  std::string message;

  friend bool operator==(const Finding&, const Finding&) = default;
};

// "k.cu:3:7: message".
std::string to_string(const Finding& finding);

struct File {
  std::string path;  // absolute
  std::string text;
};

struct Parse {
  File main;
  std::vector<File> files;             // that may be included
  std::vector<std::string> arguments;  // of clang -cc1, without the file's name
  bool skip_function_bodies = false;
};

// Calls `visit` with the syntax tree if the text parses, and returns what Clang says: errors and
// warnings. Place::file is the path without its first "/".
std::vector<Finding> parse(const Parse& what, const std::function<void(clang::ASTContext&)>& visit);

// The built-in device headers of one side, "cuda" or "emulator", below /device/SIDE and
// /device/common.
std::vector<File> device_headers();
std::vector<std::string> emulator_arguments();

}  // namespace afdep::lint
