// The rules of check.h, in two groups that each fill one report.
#pragma once

#include <string>
#include <string_view>

#include "generator/plan/plan.h"
#include "runtime/support/diagnostic.h"

namespace afdep::plan {

class CheckReport {
 public:
  void add(std::string_view rule, const std::string& what) {
    found_.push_back({ErrorCode::kVerification,
                      {},
                      "plan rule \"" + std::string(rule) + "\": " + what,
                      "docs/plan.md gives the rule's reason; the planner broke it"});
  }
  [[nodiscard]] bool empty() const { return found_.empty(); }
  [[nodiscard]] Diagnostics take() { return std::move(found_); }

 private:
  Diagnostics found_;
};

// Rules "shape", "region", "overlap" and "window": the plan's numbers and memory, whatever runs on
// it.
void check_memory(const ExchangePlan& plan, CheckReport& report);

// Rules "kernel", "launch" and "symbol".
void check_kernels(const ExchangePlan& plan, CheckReport& report);

// Rules "signal", "pairing", "capacity", "halves", "done", "order", "path" and "packet".
void check_protocol(const ExchangePlan& plan, CheckReport& report);

// In the window of `role`; null if there is none.
const Region* find_region(const ExchangePlan& plan, Role role, std::string_view name);

// Null if there is none.
const Signal* find_signal(const BucketPlan& bucket, std::string_view name);

Role role_of(Operation operation);

}  // namespace afdep::plan
