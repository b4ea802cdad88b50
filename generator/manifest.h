// An ExchangePlan as the runtime knows it: the only place that turns one into the other.
#pragma once

#include <string>
#include <vector>

#include "generator/compile_all.h"
#include "generator/emit/kernel_source.h"
#include "generator/plan/plan.h"
#include "runtime/bundle/bundle.h"

namespace afdep {

// sources[i] belongs to the plan's i-th kernel.
bundle::Manifest manifest_of(const plan::ExchangePlan& plan,
                             const std::vector<KernelSource>& sources, const CompiledAll& compiled);

// The files that the manifest names.
std::vector<bundle::File> files_of(std::string plan_text, const std::vector<KernelSource>& sources,
                                   const std::vector<CompiledModule>& modules);

}  // namespace afdep
