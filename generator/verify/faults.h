// What the others say when one rank fails: rule 4 of docs/protocol.md, a fault is never silent.
#pragma once

#include "generator/verify/run.h"

namespace afdep::verify {

// A rank that never comes, one that dies while it sends, one that comes after the others have given
// up, and one whose packet or flag arrives damaged. In each case every kernel that is left ends,
// those that wait for the rank name it in E701 and no other says anything but E701, and the process
// runs an exchange of a new group afterwards.
Result<void> run_faults(const Subject& subject, const bundle::Bundle& bundle,
                        const RunOptions& options, Random& random, RunReport& report);

}  // namespace afdep::verify
