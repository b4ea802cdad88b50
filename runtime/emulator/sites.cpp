#include "runtime/emulator/sites.h"

#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace afdep::emulator {
namespace {

struct Table {
  std::mutex mutex;
  std::vector<SiteText> sites;
};

// Never destroyed, like the kernels that refer to it.
Table& table() {
  static Table* const kTable = new Table;
  return *kTable;
}

}  // namespace

Site add_site(SiteText text) {
  const std::scoped_lock lock(table().mutex);
  table().sites.push_back(std::move(text));
  return static_cast<Site>(table().sites.size());
}

std::string describe(Site site) {
  const std::scoped_lock lock(table().mutex);
  if (site == 0 || site > table().sites.size()) return "an unknown place";
  const SiteText& text = table().sites[site - 1];
  return text.device.empty() ? text.place : fmt::format("{} ({})", text.place, text.device);
}

}  // namespace afdep::emulator
