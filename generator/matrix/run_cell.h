// One cell from spec to verdict, in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "generator/matrix/outcome.h"
#include "generator/plan/plan.h"
#include "generator/spec/spec.h"

namespace afdep::matrix {

struct CellOptions {
  int seeds = 0;  // of verification; 0: two, or verify's default if that is less
  std::uint64_t first_seed = 1;
  bool compile = true;  // with NVRTC, for the spec's architectures
  bool verify = true;   // on the emulator
};

// Plans and emits a spec, compiles it and verifies it, as far as `options` say. `file` names the
// spec in messages, and `text` is what spec::parse read it from. `tell` hears "plan", "compile",
// "verify" as each begins. Does not set seconds.
CellResult run_cell(const spec::Spec& spec, std::string_view text, const std::string& file,
                    const CellOptions& options, const std::function<void(std::string_view)>& tell);

// A few lines that sum up a plan: windows, and of each bucket its protocol and cost.
Facts figures_of(const plan::ExchangePlan& plan);

}  // namespace afdep::matrix
