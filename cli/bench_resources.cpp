#include "cli/bench_resources.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace afdep::cli {
namespace {

plan::Resources held_by(const bundle::Bucket& bucket, bundle::Role role, std::string_view arch,
                        int sm_count) {
  std::vector<plan::KernelShape> kernels;
  for (const bundle::Kernel& kernel : bucket.kernels) {
    if (kernel.role != role) continue;
    plan::KernelShape shape{.grid = kernel.grid,
                            .threads = kernel.threads,
                            .registers = 0,
                            .shared_bytes = kernel.shared_bytes};
    for (const bundle::Compiled& compiled : kernel.compiled) {
      if (compiled.arch == arch) shape.registers = compiled.registers;
    }
    kernels.push_back(shape);
  }
  return plan::resources_of(kernels, sm_count);
}

nlohmann::json to_json(const plan::Resources& held) {
  nlohmann::json json;
  for_each_field(held, [&](const char* name, auto value) { json[name] = value; });
  return json;
}

}  // namespace

std::vector<BucketResources> resources_of(const bundle::Manifest& manifest, std::string_view arch,
                                          int sm_count) {
  std::vector<BucketResources> buckets;
  for (const bundle::Bucket& bucket : manifest.buckets) {
    buckets.push_back({.bucket = bucket.tokens,
                       .protocol = std::string(bundle::to_string(bucket.protocol)),
                       .attention = held_by(bucket, bundle::Role::kAttention, arch, sm_count),
                       .ffn = held_by(bucket, bundle::Role::kFfn, arch, sm_count)});
  }
  return buckets;
}

std::string to_text(const std::vector<BucketResources>& buckets, int sm_count) {
  std::vector<plan::NamedResources> rows;
  for (const BucketResources& bucket : buckets) {
    rows.push_back({fmt::format("{} attention", bucket.bucket), bucket.attention});
    rows.push_back({fmt::format("{} ffn", bucket.bucket), bucket.ffn});
  }
  return plan::print_resources(rows, /*gpu=*/"", sm_count, /*registers_at_most=*/false);
}

std::string to_json_text(const std::vector<BucketResources>& buckets) {
  nlohmann::json all = nlohmann::json::array();
  for (const BucketResources& bucket : buckets) {
    all.push_back({{"bucket", bucket.bucket},
                   {"protocol", bucket.protocol},
                   {"attention", to_json(bucket.attention)},
                   {"ffn", to_json(bucket.ffn)}});
  }
  return all.dump();
}

}  // namespace afdep::cli
