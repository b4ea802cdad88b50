#include "generator/plan/check.h"

#include "generator/plan/check_rules.h"

namespace afdep::plan {

Result<void> check(const ExchangePlan& plan) {
  CheckReport report;
  check_memory(plan, report);
  check_kernels(plan, report);
  check_protocol(plan, report);
  if (report.empty()) return {};
  return Failure(report.take());
}

const Region* find_region(const ExchangePlan& plan, Role role, std::string_view name) {
  const RoleLayout& layout = role == Role::kAttention ? plan.attention : plan.ffn;
  for (const Region& region : layout.window) {
    if (region.name == name) return &region;
  }
  return nullptr;
}

const Signal* find_signal(const BucketPlan& bucket, std::string_view name) {
  for (const Signal& signal : bucket.signals) {
    if (signal.name == name) return &signal;
  }
  return nullptr;
}

Role role_of(Operation operation) {
  switch (operation) {
    case Operation::kReceive:
    case Operation::kReply:
    case Operation::kExpand:
    case Operation::kIdleReduce:
      return Role::kFfn;
    case Operation::kDispatch:
    case Operation::kCollect:
    case Operation::kCollectView:
    case Operation::kReduce:
    case Operation::kIdleExpand:
      return Role::kAttention;
  }
  return Role::kAttention;
}

}  // namespace afdep::plan
