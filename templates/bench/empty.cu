// Does nothing: the time from one kernel of a graph to the next.
#include "afdep/thread.cuh"

struct Nothing {
  uint32_t reserved;
};

extern "C" __global__ void __launch_bounds__(32, 1)
afdep_bench_empty(const __grid_constant__ Nothing) {
  afdep::await_previous_kernel();
  afdep::release_next_kernel();
}
