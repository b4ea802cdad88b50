// The named constants of an emitted kernel, with the reason of each.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "generator/plan/plan.h"

namespace afdep::plan {

class Constants {
 public:
  Constants& add(std::string name, std::int64_t value, std::string why) {
    list_.push_back({std::move(name), value, std::move(why)});
    return *this;
  }
  std::vector<Constant> take() { return std::move(list_); }

 private:
  std::vector<Constant> list_;
};

}  // namespace afdep::plan
