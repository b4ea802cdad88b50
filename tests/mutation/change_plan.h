// Wrong constants in a plan.
#pragma once

#include <cstdint>
#include <string>

#include "generator/plan/plan.h"

namespace afdep::mutation {

template <typename Visit>
void for_each_constant(plan::ExchangePlan& plan, const std::string& name, const Visit& visit) {
  for (plan::BucketPlan& bucket : plan.buckets) {
    for (plan::Kernel& kernel : bucket.kernels) {
      for (plan::Constant& constant : kernel.constants) {
        if (constant.name == name) visit(kernel, constant);
      }
    }
  }
}

inline void set_all(plan::ExchangePlan& plan, const std::string& name, std::int64_t value) {
  for_each_constant(plan, name,
                    [value](const plan::Kernel&, plan::Constant& each) { each.value = value; });
}

inline void set_in(plan::ExchangePlan& plan, plan::Operation operation, const std::string& name,
                   std::int64_t value) {
  for_each_constant(plan, name, [&](const plan::Kernel& kernel, plan::Constant& each) {
    if (kernel.operation == operation) each.value = value;
  });
}

}  // namespace afdep::mutation
