// The text of every file below templates/kernels, templates/fragments and templates/device.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace afdep::templates {

struct File {
  std::string_view path;  // below templates/, e.g. "kernels/dispatch.cu.in"
  std::string_view text;
};

// Sorted by path. Lives as long as the program.
std::span<const File> files();

// The text of one file; nothing if there is no such path.
std::optional<std::string_view> find(std::string_view path);

}  // namespace afdep::templates
