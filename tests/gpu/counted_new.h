// Counts calls of operator new, in a program that links counted_new.cpp.
#pragma once

#include <cstdint>

namespace afdep::testing {

// Of this thread, since it started.
std::int64_t allocations();

}  // namespace afdep::testing
