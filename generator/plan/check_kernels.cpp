#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "generator/plan/check_rules.h"

namespace afdep::plan {
namespace {

// Limits of sm_90 and sm_100. Source: CUDA C++ Programming Guide, "Technical Specifications per
// Compute Capability".
constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;  // a CTA
constexpr int kMaxThreadsPerSm = 2048;
constexpr int kMaxRegisters = 255;                // a thread
constexpr std::int64_t kMaxSharedBytes = 232448;  // a CTA, 227 KiB

std::string name_of(const BucketPlan& bucket, const Kernel& kernel) {
  return fmt::format("bucket {}: {}", bucket.bucket, to_string(kernel.operation));
}

void check_launch(const std::string& name, const Kernel& kernel, CheckReport& report) {
  const auto refuse = [&](const std::string& what) {
    report.add("launch", fmt::format("{}: {}", name, what));
  };
  if (kernel.grid < 1) refuse(fmt::format("grid = {}", kernel.grid));
  if (kernel.threads < kWarp || kernel.threads > kMaxThreads || kernel.threads % kWarp != 0) {
    refuse(fmt::format("threads = {} are not 1 to {} warps", kernel.threads, kMaxThreads / kWarp));
  }
  if (kernel.blocks_per_sm < 1 || kernel.blocks_per_sm * kernel.threads > kMaxThreadsPerSm) {
    refuse(fmt::format("blocks_per_sm = {} of {} threads; an SM holds {}", kernel.blocks_per_sm,
                       kernel.threads, kMaxThreadsPerSm));
  }
  if (kernel.register_ceiling < 1 || kernel.register_ceiling > kMaxRegisters) {
    refuse(fmt::format("register_ceiling = {}; a thread has at most {}", kernel.register_ceiling,
                       kMaxRegisters));
  }
  if (kernel.shared_bytes < 0 || kernel.shared_bytes > kMaxSharedBytes) {
    refuse(fmt::format("shared_bytes = {}; a CTA has at most {}", kernel.shared_bytes,
                       kMaxSharedBytes));
  }
}

void check_kernel(const BucketPlan& bucket, const Kernel& kernel, CheckReport& report) {
  const std::string name = name_of(bucket, kernel);
  const auto refuse = [&](const std::string& what) {
    report.add("kernel", fmt::format("{}: {}", name, what));
  };
  if (kernel.role != role_of(kernel.operation)) {
    refuse(fmt::format("is planned for {} ranks", to_string(kernel.role)));
  }
  if (kernel.bucket != bucket.bucket) {
    refuse(fmt::format("is planned for bucket {}", kernel.bucket));
  }
  if (kernel.protocol != bucket.protocol) {
    refuse(fmt::format("protocol {}, but the bucket's is {}", to_string(kernel.protocol),
                       to_string(bucket.protocol)));
  }
  if (kernel.template_path.empty()) refuse("has no template");
  std::set<std::string> constants;
  for (const Constant& constant : kernel.constants) {
    if (!constants.insert(constant.name).second) {
      refuse(fmt::format("constant {} is given twice", constant.name));
    }
    if (constant.name.empty() || constant.why.empty()) {
      refuse(fmt::format("constant \"{}\" lacks a name or a reason", constant.name));
    }
  }
  check_launch(name, kernel, report);
}

void check_operations(const ExchangePlan& plan, const BucketPlan& bucket, CheckReport& report) {
  const auto expect = [&](Operation operation, std::ptrdiff_t wanted) {
    const std::ptrdiff_t count =
        std::ranges::count(bucket.kernels, operation, [](const Kernel& k) { return k.operation; });
    if (count != wanted) {
      report.add("kernel", fmt::format("bucket {}: {} {} kernels, expected {}", bucket.bucket,
                                       count, to_string(operation), wanted));
    }
  };
  expect(Operation::kDispatch, 1);
  expect(Operation::kReceive, 1);
  expect(Operation::kReply, 1);
  expect(Operation::kCollect, 1);
  // Packets carry generations among the data, so their replies cannot be read in place.
  const bool view = plan.has_view && bucket.protocol != Protocol::kFlagInData;
  expect(Operation::kCollectView, view ? 1 : 0);
  const int epilogues = plan.ablation.separate_epilogues ? 1 : 0;
  expect(Operation::kExpand, epilogues);
  expect(Operation::kReduce, epilogues);
  const int idle = plan.ablation.dummy_experts ? epilogues : 0;
  expect(Operation::kIdleExpand, idle);
  expect(Operation::kIdleReduce, idle);
}

}  // namespace

void check_kernels(const ExchangePlan& plan, CheckReport& report) {
  std::set<std::string> symbols;
  for (const BucketPlan& bucket : plan.buckets) {
    check_operations(plan, bucket, report);
    for (const Kernel& kernel : bucket.kernels) {
      check_kernel(bucket, kernel, report);
      if (kernel.symbol.empty()) {
        report.add("symbol", name_of(bucket, kernel) + ": has no symbol");
      } else if (!symbols.insert(kernel.symbol).second) {
        report.add("symbol", fmt::format("{}: {} names another kernel too", name_of(bucket, kernel),
                                         kernel.symbol));
      }
    }
  }
}

}  // namespace afdep::plan
