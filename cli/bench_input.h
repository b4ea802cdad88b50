// What afdep-bench measures: a spec, compiled for this GPU, or a bundle with its cubins.
#pragma once

#include <memory>
#include <string>

#include "runtime/backend/backend.h"
#include "runtime/bundle/bundle.h"
#include "runtime/support/result.h"

namespace afdep::cli {

struct BenchInput {
  std::unique_ptr<Backend> gpu;
  bundle::Bundle bundle;
};

// A folder is a bundle, anything else a spec ("-" for standard input), whose kernels are compiled
// for this GPU and no other, with `trace` so that they record their steps. What cannot be read is
// said before the lack of a GPU. A spec that was tuned on another GPU is warned of on stderr.
Result<BenchInput> open_input(const std::string& name, bool trace = false);

}  // namespace afdep::cli
