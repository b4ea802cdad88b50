// Mistakes in the kernels of the smallest packet buckets, which look at things before they must be
// there.
#pragma once

#include <vector>

#include "tests/mutation/mutant.h"

namespace afdep::mutation {

void add_early(std::vector<Mutant>& all);

}  // namespace afdep::mutation
