#pragma once

#include <set>
#include <string>

#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep::bundle {

// Refuses, with kBundle and the field's name, a manifest that contradicts itself: the runtime
// indexes memory by its numbers.
Result<void> check(const Manifest& manifest);

// Paths of the files that the manifest's plan and kernels need.
std::set<std::string> needed_files(const Manifest& manifest);

}  // namespace afdep::bundle
