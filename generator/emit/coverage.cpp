#include "generator/emit/coverage.h"

#include <fmt/format.h>

namespace afdep::emit {

void Coverage::declare(const Directive& directive) { directives_.try_emplace(directive); }

void Coverage::record(const Directive& directive, Side side) {
  Sides& sides = directives_[directive];
  (side == Side::kTaken ? sides.taken : sides.not_taken) = true;
}

void Coverage::merge(const Coverage& other) {
  for (const auto& [directive, theirs] : other.directives_) {
    Sides& ours = directives_[directive];
    ours.taken |= theirs.taken;
    ours.not_taken |= theirs.not_taken;
  }
}

std::vector<MissedSide> Coverage::missed() const {
  std::vector<MissedSide> missed;
  for (const auto& [directive, sides] : directives_) {
    if (!sides.taken) missed.push_back({directive, Side::kTaken});
    if (!sides.not_taken) missed.push_back({directive, Side::kNotTaken});
  }
  return missed;
}

std::string to_string(const MissedSide& missed) {
  const Directive& directive = missed.directive;
  const bool taken = missed.side == Side::kTaken;
  const char* what = directive.is_loop ? (taken ? "never ran" : "never empty")
                                       : (taken ? "never taken" : "never skipped");
  return fmt::format("{}:{}: {}: {}", directive.template_path, directive.line, what,
                     directive.text);
}

}  // namespace afdep::emit
