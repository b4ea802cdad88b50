#include "generator/compile/module.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace afdep::compile {
namespace {

constexpr std::array<std::string_view, 2> kArches = {"sm_90a", "sm_100a"};

}  // namespace

std::span<const std::string_view> supported_arches() { return kArches; }

Diagnostics check_ceilings(const CompiledModule& module, const Ceilings& ceilings) {
  Diagnostics found;
  const auto check = [&](int value, int limit, const char* what, const char* note) {
    if (value <= limit) return;
    found.push_back({ErrorCode::kToolchain,
                     {},
                     fmt::format("{} for {}: {} {}, over the plan's {}", module.symbol, module.arch,
                                 value, what, limit),
                     note});
  };
  check(module.registers, ceilings.registers, "registers a thread",
        "the kernel would not be co-resident as planned; compare the NVRTC version with the tested "
        "one");
  check(module.spill_bytes, 0, "bytes of register spills",
        "a kernel keeps its state in registers; lower the unrolling in its template");
  check(module.local_bytes, 0, "bytes of local memory a thread",
        "an array is indexed by a value that is not known at compile time, or registers spill");
  check(module.shared_bytes, ceilings.shared_bytes, "bytes of static shared memory",
        "shared memory beyond the plan's breaks its count of resident blocks");
  return found;
}

}  // namespace afdep::compile
