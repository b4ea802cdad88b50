// The whole pipeline: Spec -> Topology -> ExchangePlan -> KernelSource -> CompiledModule -> bundle.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "generator/compile/module.h"
#include "generator/emit/coverage.h"
#include "generator/emit/kernel_source.h"
#include "generator/plan/plan.h"
#include "generator/spec/spec.h"
#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep {

struct GenerateOptions {
  bool emit_only = false;  // no cubins: for reading, and for the emulator
  bool trace = false;      // kernels record when warps pass steps; another digest
  int threads = 2;         // that compile
  // Told after each compilation, from one thread at a time.
  std::function<void(int done, int total)> on_compiled = nullptr;
  emit::Coverage* coverage = nullptr;  // of the template directives
};

// Everything that a bundle is made of.
struct Generated {
  plan::ExchangePlan plan;
  std::vector<KernelSource> sources;    // in the plan's order: bucket by bucket, kernel by kernel
  std::vector<CompiledModule> modules;  // source by source, arch by arch; none if emit_only
  bundle::Bundle bundle;
};

// The checked plan of a spec that spec::parse accepted.
Result<plan::ExchangePlan> plan_exchange(const spec::Spec& spec);

// A pure function of the spec and the toolchain; touches no file but the cache of compiled kernels
// that the spec names.
Result<Generated> generate(const spec::Spec& spec, const GenerateOptions& options);

}  // namespace afdep
