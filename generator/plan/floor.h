// The time that no implementation of a planned exchange can beat on a given machine.
#pragma once

#include <vector>

#include "generator/plan/plan.h"

namespace afdep::plan {

// A measured copy rate: `ctas` CTAs on as many SMs, bytes read plus bytes written.
struct CopyRate {
  int ctas = 0;
  double tb_per_s = 0;
};

// Rates of one machine. The defaults were measured on an H200; a benchmark may measure its own.
struct MachineRates {
  double graph_node_gap_us = 0.53;      // end of a graph's kernel to the start of the next
  double programmatic_gap_us = 0.47;    // the same where the earlier kernel releases the later one
  double flag_hop_us = 0.86;            // a flag's store to its sight by a spinning peer
  double grid_sync_us = 1.0;            // of a kernel's CTAs
  double link_gb_per_s = 450;           // NVLink, one way, all links of a GPU
  int sms = 132;                        // of one GPU
  std::vector<CopyRate> register_copy;  // ascending ctas; loads and stores through registers
  std::vector<CopyRate> bulk_copy;      // ascending ctas; bulk copies through shared memory
};

// Rates of one H200.
MachineRates h200_rates();

// Linear between the points and from zero to the first; constant after the last. Precondition:
// points is not empty.
double copy_rate_tb_per_s(const std::vector<CopyRate>& points, int ctas);

// Every rank on its own GPU. The larger, over the two roles, of launches and bytes: a rank's
// launches on the critical path times their gaps, and the larger of the bytes that it reads and
// writes over the copy rate of its larger grid and the bytes that leave or enter it over the link
// rate. To them the hops are added.
Floor floor_of(const ExchangePlan& plan, const BucketPlan& bucket, const MachineRates& rates);

// Every rank a stream of one GPU: nothing crosses a link, and the bytes of all ranks share one
// memory and its SMs.
Floor loopback_floor_of(const ExchangePlan& plan, const BucketPlan& bucket,
                        const MachineRates& rates);

}  // namespace afdep::plan
