// Whether verification finds a mutant.
#pragma once

#include <string>

#include "tests/mutation/mutant.h"

namespace afdep::mutation {

struct Verdict {
  bool applies = false;  // to one of its victims
  bool killed = false;
  std::string by;       // victim, seed, strategy and what was found; or why it could not be judged
  bool broken = false;  // does not compile, or cannot run at all
};

// Verifies each victim with up to `seeds` seeds, and by every schedule where that is cheap, until
// one fails.
Verdict judge(const Mutant& mutant, int seeds);

}  // namespace afdep::mutation
