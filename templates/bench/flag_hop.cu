// Two of these, on two streams, pass a number back and forth: the time of a flag hop.
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"

struct HopArgs {
  uint32_t* mine;   // written by the other kernel
  uint32_t* other;  // written by this one
  uint32_t rounds;
  uint32_t leads;  // 1 in the kernel that begins
};

constexpr int kMostPolls = 1 << 24;  // seconds: the other kernel is not there

extern "C" __global__ void __launch_bounds__(32, 1)
afdep_bench_flag_hop(const __grid_constant__ HopArgs args) {
  if (afdep::thread_index() != 0) return;
  for (uint32_t round = 1; round <= args.rounds; ++round) {
    if (args.leads != 0) afdep::store_release(args.other, round);
    int polls = 0;
    while (afdep::load_acquire(args.mine) != round) {
      if (++polls == kMostPolls) return;
    }
    if (args.leads == 0) afdep::store_release(args.other, round);
  }
}
