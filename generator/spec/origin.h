// Where each value of a spec was written: more than the one place of a Field, for rules about
// elements.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "runtime/support/diagnostic.h"

namespace afdep::spec {

class Origin {
 public:
  explicit Origin(std::string file) : file_(std::move(file)) {}

  void set_place(std::string path, Place place) { places_[std::move(path)] = std::move(place); }

  // The value at `path` was refused already: rules that need it are skipped.
  void mark_bad(std::string path) { bad_.insert(std::move(path)); }
  [[nodiscard]] bool good(std::string_view path) const { return !bad_.contains(path); }

  // Of the value at "capacity.buckets[2]"; else of what holds it; else the start of the file.
  [[nodiscard]] Place place(std::string_view path) const {
    while (true) {
      if (const auto found = places_.find(path); found != places_.end()) return found->second;
      const std::size_t cut = path.find_last_of(".[");
      if (cut == std::string_view::npos) return {file_, 1, 1};
      path = path.substr(0, cut);
    }
  }

 private:
  std::string file_;
  std::map<std::string, Place, std::less<>> places_;
  std::set<std::string, std::less<>> bad_;
};

}  // namespace afdep::spec
