#include "generator/plan/resources.h"

#include <algorithm>

#include <fmt/format.h>

#include "generator/plan/text_table.h"
#include "runtime/support/check.h"

namespace afdep::plan {
namespace {

constexpr int kWarp = 32;
constexpr int kRegisterGranule = 8;  // of a thread

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Resources resources_of(const std::vector<KernelShape>& kernels, int sm_count) {
  constexpr SmCapacity kSm;
  Resources held;
  for (const KernelShape& kernel : kernels) {
    const int threads = round_up(kernel.threads, kWarp);
    held.ctas = std::max(held.ctas, kernel.grid);
    held.threads = std::max(held.threads, threads);
    held.registers =
        std::max(held.registers, threads * round_up(kernel.registers, kRegisterGranule));
    held.shared_bytes = std::max(held.shared_bytes, kernel.shared_bytes);
  }
  held.sms = std::min(held.ctas, sm_count);
  held.sms_left = sm_count - held.sms;
  held.threads_left = std::max(0, kSm.threads - held.threads);
  held.registers_left = std::max(0, kSm.registers - held.registers);
  held.shared_bytes_left =
      std::max<std::int64_t>(0, kSm.shared_bytes - held.shared_bytes - kSm.reserved_shared_bytes);
  return held;
}

Resources resources_of(const BucketPlan& bucket, Role role, int sm_count) {
  std::vector<KernelShape> kernels;
  for (const Kernel& kernel : bucket.kernels) {
    if (kernel.role != role) continue;
    kernels.push_back({.grid = kernel.grid,
                       .threads = kernel.threads,
                       .registers = kernel.register_ceiling,
                       .shared_bytes = kernel.shared_bytes});
  }
  return resources_of(kernels, sm_count);
}

int sm_count_of(Arch arch) {
  switch (arch) {
    case Arch::kSm90a:
      return 132;
    case Arch::kSm100a:
      return 148;
  }
  fail_check("unknown arch", std::source_location::current());
}

std::string_view gpu_name_of(Arch arch) {
  switch (arch) {
    case Arch::kSm90a:
      return "H200";
    case Arch::kSm100a:
      return "B200";
  }
  fail_check("unknown arch", std::source_location::current());
}

std::string print_resources(const std::vector<NamedResources>& rows, std::string_view gpu,
                            int sm_count, bool registers_at_most) {
  const std::string held_by =
      gpu.empty() ? "held by a rank" : fmt::format("held by a rank ({})", gpu);
  TextTable table({held_by, ">CTAs", ">threads", ">registers", ">shared",
                   fmt::format(">SMs free of {}", sm_count), "beside a CTA its SM has left"});
  for (const auto& [name, held] : rows) {
    table.add({name, fmt::format("{}", held.ctas), fmt::format("{}", held.threads),
               fmt::format("{}{}", registers_at_most ? "<= " : "", held.registers),
               fmt::format("{}", held.shared_bytes), fmt::format("{}", held.sms_left),
               fmt::format("{} threads, {} registers, {}", held.threads_left, held.registers_left,
                           human_bytes(static_cast<double>(held.shared_bytes_left)))});
  }
  return table.print(2);
}

}  // namespace afdep::plan
