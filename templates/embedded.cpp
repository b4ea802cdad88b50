#include "templates/embedded.h"

#include <algorithm>

namespace afdep::templates {

std::optional<std::string_view> find(std::string_view path) {
  const auto all = files();
  const auto found = std::ranges::find(all, path, &File::path);
  if (found == all.end()) return std::nullopt;
  return found->text;
}

}  // namespace afdep::templates
