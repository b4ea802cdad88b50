// Every kernel of a plan for every architecture of its spec, on several threads, through the cache.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/compile/module.h"
#include "generator/emit/kernel_source.h"
#include "generator/plan/plan.h"
#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep {

struct CompiledAll {
  std::vector<CompiledModule> modules;  // source by source, arch by arch
  std::string compiler;                 // names the NVRTC library; empty if nothing was compiled
};

// sources[i] belongs to the plan's i-th kernel. Fails with the diagnostics of every kernel that
// does not compile or breaks its plan's ceilings; those of the toolchain or the cache are reported
// once.
Result<CompiledAll> compile_all(const spec::Spec& spec, const plan::ExchangePlan& plan,
                                const std::vector<KernelSource>& sources, int threads,
                                const std::function<void(int done, int total)>& on_compiled);

}  // namespace afdep
