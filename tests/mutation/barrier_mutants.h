// Mistakes in the barriers, gates and counts of no rows of plans that revert improvements.
#pragma once

#include <vector>

#include "tests/mutation/mutant.h"

namespace afdep::mutation {

void add_barrier(std::vector<Mutant>& all);

}  // namespace afdep::mutation
