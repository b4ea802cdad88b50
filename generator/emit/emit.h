// A plan becomes the texts of its kernels.
#pragma once

#include <vector>

#include "generator/emit/coverage.h"
#include "generator/emit/kernel_source.h"
#include "generator/plan/plan.h"

namespace afdep::emit {

// One source a kernel, in the plan's order (buckets ascending, then dispatch, receive, reply,
// collect, collect_view). The same plan gives the same bytes. Throws InternalError on a mistake in
// a template. `coverage` may be null.
std::vector<KernelSource> emit(const plan::ExchangePlan& plan, Coverage* coverage = nullptr);

}  // namespace afdep::emit
