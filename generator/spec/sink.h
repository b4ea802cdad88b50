// Collects the errors of one spec file, so that all of them are reported together.
#pragma once

#include <string>
#include <string_view>

#include "runtime/support/diagnostic.h"

namespace afdep::spec {

// Keeps the first kMax errors; a hostile file may hold a hundred thousand.
class Sink {
 public:
  static constexpr std::size_t kMax = 100;

  void add(ErrorCode code, Place place, std::string message, std::string note);
  [[nodiscard]] bool full() const { return errors_.size() >= kMax; }
  [[nodiscard]] bool empty() const { return errors_.empty(); }

  // In the order of the file, so that a reader works from top to bottom. Leaves the sink empty.
  [[nodiscard]] Diagnostics take();

 private:
  Diagnostics errors_;  // sorted by line and column; of one place, in the order of add()
};

// `text` fit for a message: in double quotes, control characters escaped, cut after 60 bytes.
std::string quoted(std::string_view text);

// As quoted(), without the quotes.
std::string shown(std::string_view text);

}  // namespace afdep::spec
