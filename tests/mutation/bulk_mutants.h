// Mistakes in the kernels of bulk buckets.
#pragma once

#include <vector>

#include "tests/mutation/mutant.h"

namespace afdep::mutation {

void add_bulk(std::vector<Mutant>& all);

}  // namespace afdep::mutation
