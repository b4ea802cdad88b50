// A program for barriers by themselves. In emitted kernels flags and packets order once more what a
// barrier orders, so that plans with and without barriers share their code; here nothing else does.
#pragma once

#include <cstdint>
#include <string>

namespace afdep::mutation {

// Two ranks send and two receive, three blocks each, three generations back to back through one
// place: ordinary stores behind the entry barrier and before the exit barrier, ordinary loads
// behind that, or in the next kernel. Returns what is wrong with the first seed that fails; empty
// if nothing is. Uses the device headers as they are replaced at the moment.
std::string run_barrier_program(std::uint64_t first_seed, int seeds);

}  // namespace afdep::mutation
