// afdep-gen plan: the plan as text, JSON or a picture.
#include <fmt/format.h>

#include <algorithm>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "cli/output_file.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/plan/json.h"
#include "generator/plan/svg.h"
#include "generator/plan/text.h"

namespace afdep::cli {
namespace {

// Drops every other bucket. E208 if the plan has no such one.
Result<void> keep_bucket(plan::ExchangePlan& plan, int bucket) {
  std::string known;
  for (const plan::BucketPlan& each : plan.buckets) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.bucket);
  }
  std::erase_if(plan.buckets,
                [bucket](const plan::BucketPlan& each) { return each.bucket != bucket; });
  if (!plan.buckets.empty()) return {};
  return Failure(ErrorCode::kBuckets,
                 fmt::format("--bucket {} is not a bucket of {}", bucket, plan.name),
                 fmt::format("capacity.buckets holds {}", known));
}

Result<plan::ExchangePlan> make_plan(const PlanArguments& arguments) {
  const Result<spec::Spec> spec = load_spec(arguments.spec);
  if (!spec.ok()) return spec.failure();
  Result<plan::ExchangePlan> plan = plan_exchange(*spec);
  if (plan.ok() && arguments.bucket != 0) {
    AFDEP_RETURN_IF_FAILED(keep_bucket(*plan, arguments.bucket));
  }
  return plan;
}

}  // namespace

int run_plan(const PlanArguments& arguments) {
  const Result<plan::ExchangePlan> plan = make_plan(arguments);
  if (!plan.ok()) return report_failure(plan.diagnostics(), arguments.json);
  if (!arguments.svg.empty()) {
    const std::string picture = plan::draw(*plan, plan->buckets.front().bucket);
    const Result<void> written = write_file(arguments.svg, picture);
    if (!written.ok()) return report_failure(written.diagnostics(), arguments.json);
  }
  print_out(arguments.json ? plan::to_json(*plan) : plan::print(*plan));
  return kExitOk;
}

}  // namespace afdep::cli
