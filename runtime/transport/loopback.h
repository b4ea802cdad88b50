// All ranks in one process on one backend, each on its own streams: development and tests on one
// GPU, and the emulator.
#pragma once

#include <memory>
#include <vector>

#include "runtime/transport/communicator.h"

namespace afdep {

// One communicator per world rank. They share the backend, which must outlive them, and may be used
// from one thread, in any order of ranks, or from one thread each: no call blocks. Since none
// waits, a rank that disagrees is told at once, and those that had already registered are told by
// ready(). Precondition: 1 <= ranks <= kMaxRanks.
std::vector<std::unique_ptr<Communicator>> make_loopback(Backend& backend, int ranks);

}  // namespace afdep
