// afdep-gen check and print: what the spec stage says.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/spec/printer.h"

namespace afdep::cli {
namespace {

// The plan is checked too, since some limits show only there.
Result<plan::ExchangePlan> check_one(const std::string& name) {
  Result<spec::Spec> spec = load_spec(name);
  if (!spec.ok()) return spec.failure();
  return plan_exchange(*spec);
}

}  // namespace

int run_check(const CheckArguments& arguments) {
  int code = kExitOk;
  nlohmann::json report = nlohmann::json::array();
  for (const std::string& name : arguments.specs) {
    const Result<plan::ExchangePlan> plan = check_one(name);
    nlohmann::json row{{"spec", name}, {"ok", plan.ok()}};
    if (!plan.ok()) {
      print_error(to_string(plan.diagnostics()));
      row["errors"] = nlohmann::json::parse(diagnostics_to_json(plan.diagnostics()));
      code = std::max(code, exit_code_of(plan.diagnostics()));
    } else if (!arguments.json) {
      print_out(fmt::format("{}: ok: {}, {}A{}F, {} {}\n", name, plan->name, plan->attention_ranks,
                            plan->ffn_ranks, plan->buckets.size(),
                            plan->buckets.size() == 1 ? "bucket" : "buckets"));
    }
    report.push_back(std::move(row));
  }
  if (arguments.json) {
    const nlohmann::json whole{{"ok", code == kExitOk}, {"specs", std::move(report)}};
    print_out(whole.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }
  return code;
}

int run_print(const PrintArguments& arguments) {
  const Result<spec::Spec> spec = load_spec(arguments.spec);
  if (!spec.ok()) return report_failure(spec.diagnostics(), false);
  print_out(arguments.resolved ? spec::print_resolved(*spec) : spec::print(*spec));
  return kExitOk;
}

}  // namespace afdep::cli
