// The rates of this GPU that a floor is made of.
#pragma once

#include <string>

#include "generator/plan/floor.h"
#include "runtime/backend/backend.h"
#include "runtime/support/result.h"

namespace afdep::cli {

struct Calibration {
  plan::MachineRates rates;
  bool measured = false;  // gap and hop; copy rates are always those of docs/performance.md
  std::string why_not;    // if not measured
};

// Measures the gap between a graph's kernels and a flag hop, with two small kernels that NVRTC
// compiles. Without NVRTC the rates of an H200 stand in, and why_not says so. Fails only if the GPU
// does.
Result<Calibration> calibrate(Backend& backend);

}  // namespace afdep::cli
