#include "generator/generate.h"

#include <utility>

#include "generator/compile_all.h"
#include "generator/emit/emit.h"
#include "generator/manifest.h"
#include "generator/plan/check.h"
#include "generator/plan/planner.h"
#include "generator/plan/text.h"
#include "generator/plan/trace.h"
#include "generator/topology/topology.h"

namespace afdep {

Result<plan::ExchangePlan> plan_exchange(const spec::Spec& spec) {
  Result<plan::ExchangePlan> plan = plan::plan(spec, topology::build(spec));
  if (plan.ok()) AFDEP_RETURN_IF_FAILED(plan::check(*plan));
  return plan;
}

Result<Generated> generate(const spec::Spec& spec, const GenerateOptions& options) {
  Result<plan::ExchangePlan> plan = plan_exchange(spec);
  if (!plan.ok()) return plan.failure();
  if (options.trace) {
    *plan = plan::traced(std::move(*plan));
    AFDEP_RETURN_IF_FAILED(plan::check(*plan));
  }

  std::vector<KernelSource> sources = emit::emit(*plan, options.coverage);

  CompiledAll compiled;
  if (!options.emit_only) {
    Result<CompiledAll> all =
        compile_all(spec, *plan, sources, options.threads, options.on_compiled);
    if (!all.ok()) return all.failure();
    compiled = std::move(*all);
  }

  Result<bundle::Bundle> bundle =
      bundle::make_bundle(manifest_of(*plan, sources, compiled),
                          files_of(plan::print(*plan), sources, compiled.modules));
  if (!bundle.ok()) return bundle.failure();
  return Generated{std::move(*plan), std::move(sources), std::move(compiled.modules),
                   std::move(*bundle)};
}

}  // namespace afdep
