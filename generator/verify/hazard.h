// Names the rule of docs/protocol.md that wrong data points at.
#pragma once

#include <string>
#include <vector>

#include "generator/verify/world.h"

namespace afdep::verify {

// Of an exchange that differs from its case: rule 1 if a rank got what it should have got from one
// of `earlier`, rule 2 if it got what belongs to another row or token of the same exchange; else
// empty.
Result<std::string> name_hazard(World& world, const Slot& slot, const ExchangeCase& exchange,
                                const std::vector<ExchangeCase>& earlier);

}  // namespace afdep::verify
