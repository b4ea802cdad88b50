#include "generator/manifest.h"

#include <algorithm>
#include <set>
#include <utility>

namespace afdep {
namespace {

bundle::Role role_of(plan::Role role) {
  return role == plan::Role::kAttention ? bundle::Role::kAttention : bundle::Role::kFfn;
}

bundle::Operation operation_of(plan::Operation operation) {
  switch (operation) {
    case plan::Operation::kDispatch:
      return bundle::Operation::kDispatch;
    case plan::Operation::kReceive:
      return bundle::Operation::kReceive;
    case plan::Operation::kReply:
      return bundle::Operation::kReply;
    case plan::Operation::kCollect:
      return bundle::Operation::kCollect;
    case plan::Operation::kCollectView:
      return bundle::Operation::kCollectView;
    case plan::Operation::kExpand:
      return bundle::Operation::kExpand;
    case plan::Operation::kReduce:
      return bundle::Operation::kReduce;
    case plan::Operation::kIdleExpand:
      return bundle::Operation::kIdleExpand;
    case plan::Operation::kIdleReduce:
      return bundle::Operation::kIdleReduce;
  }
  fail_check("unknown operation", std::source_location::current());
}

bundle::Protocol protocol_of(plan::Protocol protocol) {
  switch (protocol) {
    case plan::Protocol::kFlagInData:
      return bundle::Protocol::kFlagInData;
    case plan::Protocol::kChunked:
      return bundle::Protocol::kChunked;
    case plan::Protocol::kBulk:
      return bundle::Protocol::kBulk;
  }
  fail_check("unknown protocol", std::source_location::current());
}

bundle::RouteCheck route_check_of(plan::RouteCheck check) {
  switch (check) {
    case plan::RouteCheck::kReport:
      return bundle::RouteCheck::kReport;
    case plan::RouteCheck::kTrap:
      return bundle::RouteCheck::kTrap;
    case plan::RouteCheck::kOff:
      return bundle::RouteCheck::kOff;
  }
  fail_check("unknown route check", std::source_location::current());
}

// Regions whose words are done words; they do not start out as zero.
std::set<std::string> done_regions(const plan::ExchangePlan& plan) {
  std::set<std::string> names;
  for (const plan::BucketPlan& bucket : plan.buckets) {
    for (const plan::Signal& signal : bucket.signals) {
      if (signal.kind == plan::SignalKind::kDoneWord) names.insert(signal.flag_region);
    }
  }
  return names;
}

bundle::Region region_of(const plan::Region& region, bool done_words) {
  return {.name = region.name,
          .offset = region.offset,
          .halves = region.halves,
          .peers = region.peers,
          .items = region.items,
          .item_bytes = region.item_bytes,
          .peer_bytes = region.peer_bytes,
          .half_bytes = region.half_bytes,
          .done_words = done_words};
}

bundle::RoleLayout layout_of(const plan::RoleLayout& layout, const std::set<std::string>& done) {
  bundle::RoleLayout result;
  for (const plan::Region& region : layout.window) {
    result.window.push_back(region_of(region, done.contains(region.name)));
  }
  result.window_bytes = layout.window_bytes;
  for (const plan::Region& region : layout.workspace) {
    result.workspace.push_back(region_of(region, false));
  }
  result.workspace_bytes = layout.workspace_bytes;
  return result;
}

std::string source_path(const KernelSource& source) { return "src/" + source.file_name; }

bundle::Kernel kernel_of(const plan::Kernel& kernel, const KernelSource& source,
                         const std::vector<CompiledModule>& modules) {
  bundle::Kernel result{.role = role_of(kernel.role),
                        .operation = operation_of(kernel.operation),
                        .symbol = kernel.symbol,
                        .source = source_path(source),
                        .grid = kernel.grid,
                        .threads = kernel.threads,
                        .blocks_per_sm = kernel.blocks_per_sm,
                        .shared_bytes = kernel.shared_bytes,
                        .grid_sync = kernel.grid_sync,
                        .compiled = {}};
  for (const CompiledModule& module : modules) {
    if (module.symbol == kernel.symbol) {
      result.compiled.push_back({.arch = module.arch, .registers = module.registers});
    }
  }
  std::ranges::sort(result.compiled, {}, &bundle::Compiled::arch);
  return result;
}

}  // namespace

bundle::Manifest manifest_of(const plan::ExchangePlan& plan,
                             const std::vector<KernelSource>& sources,
                             const CompiledAll& compiled) {
  bundle::Manifest manifest;  // make_bundle fills in versions and files
  manifest.spec_digest = plan.spec_digest;
  manifest.nvrtc_version = compiled.compiler;
  manifest.name = plan.name;
  manifest.attention_ranks = plan.attention_ranks;
  manifest.ffn_ranks = plan.ffn_ranks;
  manifest.ffn_first = plan.ffn_first;
  manifest.hidden = plan.hidden;
  manifest.experts = plan.experts;
  manifest.top_k = plan.top_k;
  manifest.row_bytes = plan.row_bytes;
  manifest.capacity = plan.capacity;
  manifest.expert_alignment = plan.expert_alignment;
  manifest.id_type =
      plan.id_type == plan::IdType::kInt32 ? bundle::IdType::kInt32 : bundle::IdType::kInt64;
  manifest.route_check = route_check_of(plan.route_check);
  manifest.zero_padding = plan.zero_padding;
  manifest.host_counts = plan.host_counts;
  manifest.capture = plan.capture;
  manifest.has_view = plan.has_view;
  manifest.device_timeout_ms = plan.device_timeout_ms;
  manifest.host_timeout_ms = plan.host_timeout_ms;
  manifest.window_bytes = plan.window_bytes;
  const std::set<std::string> done = done_regions(plan);
  manifest.attention = layout_of(plan.attention, done);
  manifest.ffn = layout_of(plan.ffn, done);
  std::size_t next = 0;
  for (const plan::BucketPlan& planned : plan.buckets) {
    bundle::Bucket bucket{.tokens = planned.bucket,
                          .protocol = protocol_of(planned.protocol),
                          .receive_rows = plan.receive_rows(planned.bucket),
                          .kernels = {}};
    for (const plan::Kernel& kernel : planned.kernels) {
      bucket.kernels.push_back(kernel_of(kernel, sources.at(next++), compiled.modules));
    }
    manifest.buckets.push_back(std::move(bucket));
  }
  return manifest;
}

std::vector<bundle::File> files_of(std::string plan_text, const std::vector<KernelSource>& sources,
                                   const std::vector<CompiledModule>& modules) {
  std::vector<bundle::File> files;
  files.push_back({std::string(bundle::kPlanPath), std::move(plan_text)});
  for (const KernelSource& source : sources) files.push_back({source_path(source), source.text});
  for (const CompiledModule& module : modules) {
    files.push_back(
        {bundle::cubin_path(module.arch, module.symbol),
         std::string(reinterpret_cast<const char*>(module.image.data()), module.image.size())});
  }
  return files;
}

}  // namespace afdep
