// What an exchange holds of a GPU while it runs, and what it leaves to the server's own kernels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generator/plan/plan.h"

namespace afdep::plan {

// What one SM has to give. The CTA itself takes 1 KiB of shared memory beyond what it asks for.
struct SmCapacity {
  int threads = 2048;
  int registers = 65536;
  std::int64_t shared_bytes = 228 * 1024;
  std::int64_t reserved_shared_bytes = 1024;  // by each CTA
};

struct KernelShape {
  int grid = 1;
  int threads = 32;               // a CTA
  int registers = 0;              // a thread
  std::int64_t shared_bytes = 0;  // a CTA
};

// One rank's, at any moment of an exchange: it runs one kernel at a time.
struct Resources {
  int ctas = 0;
  int threads = 0;                // a CTA
  int registers = 0;              // a CTA
  std::int64_t shared_bytes = 0;  // a CTA
  int sms = 0;                    // a CTA each
  int sms_left = 0;               // that hold none
  // What one of `sms` has left beside the CTA.
  int threads_left = 0;
  int registers_left = 0;
  std::int64_t shared_bytes_left = 0;
};

// Every field with its name in JSON, in this order, as visit(name, value).
template <typename Visit>
void for_each_field(const Resources& held, const Visit& visit) {
  visit("ctas", held.ctas);
  visit("threads", held.threads);
  visit("registers", held.registers);
  visit("shared_bytes", held.shared_bytes);
  visit("sms", held.sms);
  visit("sms_left", held.sms_left);
  visit("threads_left", held.threads_left);
  visit("registers_left", held.registers_left);
  visit("shared_bytes_left", held.shared_bytes_left);
}

// The largest of everything over a role's kernels, on a GPU of `sm_count` SMs.
Resources resources_of(const std::vector<KernelShape>& kernels, int sm_count);
// From the plan: registers are the ceiling.
Resources resources_of(const BucketPlan& bucket, Role role, int sm_count);

// SMs of the GPU that an arch stands for, and its name.
int sm_count_of(Arch arch);               // 132, 148
std::string_view gpu_name_of(Arch arch);  // "H200", "B200"

// A table of rows "attention", "ffn", ... in the order given. gpu: a short name, or empty.
struct NamedResources {
  std::string name;
  Resources resources;
};
std::string print_resources(const std::vector<NamedResources>& rows, std::string_view gpu,
                            int sm_count, bool registers_at_most);

}  // namespace afdep::plan
