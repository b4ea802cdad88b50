#include "generator/plan/json.h"

#include <nlohmann/json.hpp>

#include "generator/plan/resources.h"
#include "generator/plan/sizing.h"

namespace afdep::plan {
namespace {

using Json = nlohmann::ordered_json;  // keeps the order of the fields

template <typename T, typename F>
Json list_of(const std::vector<T>& values, F one) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(one(value));
  return list;
}

Json json_of(const Region& region) {
  return {{"name", region.name},
          {"offset", region.offset},
          {"bytes", region.bytes()},
          {"halves", region.halves},
          {"peers", region.peers},
          {"items", region.items},
          {"item_bytes", region.item_bytes},
          {"peer_bytes", region.peer_bytes},
          {"half_bytes", region.half_bytes},
          {"purpose", region.purpose}};
}

Json json_of(const RoleLayout& layout) {
  const auto regions = [](const std::vector<Region>& all) {
    return list_of(all, [](const Region& region) { return json_of(region); });
  };
  return {{"window_bytes", layout.window_bytes},
          {"window", regions(layout.window)},
          {"workspace_bytes", layout.workspace_bytes},
          {"workspace", regions(layout.workspace)}};
}

Json json_of(const Signal& signal) {
  return {{"name", signal.name},
          {"kind", to_string(signal.kind)},
          {"from", to_string(signal.from)},
          {"to", to_string(signal.to)},
          {"flag_region", signal.flag_region},
          {"data_region", signal.data_region},
          {"generation_lag", signal.generation_lag}};
}

Json json_of(const Kernel& kernel) {
  return {{"role", to_string(kernel.role)},
          {"operation", to_string(kernel.operation)},
          {"protocol", to_string(kernel.protocol)},
          {"bucket", kernel.bucket},
          {"symbol", kernel.symbol},
          {"template", kernel.template_path},
          {"grid", kernel.grid},
          {"threads", kernel.threads},
          {"blocks_per_sm", kernel.blocks_per_sm},
          {"register_ceiling", kernel.register_ceiling},
          {"shared_bytes", kernel.shared_bytes},
          {"grid_sync", kernel.grid_sync},
          {"constants", list_of(kernel.constants,
                                [](const Constant& constant) {
                                  return Json{{"name", constant.name},
                                              {"value", constant.value},
                                              {"why", constant.why}};
                                })},
          {"structure", kernel.structure},
          {"steps", list_of(kernel.steps, [](const Step& step) {
             return Json{
                 {"kind", to_string(step.kind)}, {"signal", step.signal}, {"text", step.text}};
           })}};
}

Json json_of(const BucketPlan& bucket, Role role, Arch arch) {
  const Resources held = resources_of(bucket, role, sm_count_of(arch));
  Json json{{"role", to_string(role)}, {"arch", to_string(arch)}};
  for_each_field(held, [&](const char* name, auto value) { json[name] = value; });
  return json;
}

Json json_of(const BucketPlan& bucket) {
  return {
      {"bucket", bucket.bucket},
      {"protocol", to_string(bucket.protocol)},
      {"kernels", list_of(bucket.kernels, [](const Kernel& kernel) { return json_of(kernel); })},
      {"signals", list_of(bucket.signals, [](const Signal& signal) { return json_of(signal); })},
      {"critical_path", list_of(bucket.critical_path,
                                [](const Hop& hop) {
                                  return Json{{"from", to_string(hop.from)},
                                              {"to", to_string(hop.to)},
                                              {"signal", hop.signal}};
                                })},
      {"traffic",
       {{"dispatch_wire_bytes", bucket.traffic.dispatch_wire_bytes},
        {"reply_wire_bytes", bucket.traffic.reply_wire_bytes},
        {"worker_memory_bytes", bucket.traffic.worker_memory_bytes},
        {"source_memory_bytes", bucket.traffic.source_memory_bytes}}},
      {"floor",
       {{"launch_us", bucket.floor.launch_us},
        {"hop_us", bucket.floor.hop_us},
        {"bytes_us", bucket.floor.bytes_us},
        {"sync_us", bucket.floor.sync_us},
        {"total_us", bucket.floor.total_us()}}}};
}

}  // namespace

std::string to_json(const ExchangePlan& plan) {
  const Json json = {
      {"name", plan.name},
      {"spec_digest", plan.spec_digest},
      {"attention_ranks", plan.attention_ranks},
      {"ffn_ranks", plan.ffn_ranks},
      {"ffn_first", plan.ffn_first},
      {"hidden", plan.hidden},
      {"experts", plan.experts},
      {"top_k", plan.top_k},
      {"row_bytes", plan.row_bytes},
      {"capacity", plan.capacity},
      {"expert_alignment", plan.expert_alignment},
      {"zero_padding", plan.zero_padding},
      {"host_counts", plan.host_counts},
      {"capture", plan.capture},
      {"has_view", plan.has_view},
      {"traced", plan.traced},
      {"id_type", to_string(plan.id_type)},
      {"route_check", to_string(plan.route_check)},
      {"ablation",
       {{"entry_barrier", plan.ablation.entry_barrier},
        {"exit_barrier", plan.ablation.exit_barrier},
        {"dummy_experts", plan.ablation.dummy_experts},
        {"union_buffers", plan.ablation.union_buffers},
        {"separate_epilogues", plan.ablation.separate_epilogues}}},
      {"arches", list_of(plan.arches, [](Arch arch) { return Json(to_string(arch)); })},
      {"device_timeout_ms", plan.device_timeout_ms},
      {"host_timeout_ms", plan.host_timeout_ms},
      {"window_bytes", plan.window_bytes},
      {"union_window_bytes", union_window_bytes(plan)},
      {"attention", json_of(plan.attention)},
      {"ffn", json_of(plan.ffn)},
      {"buckets", list_of(plan.buckets, [&plan](const BucketPlan& bucket) {
         Json one = json_of(bucket);
         one["receive_rows"] = plan.receive_rows(bucket.bucket);
         one["held"] = Json::array();
         for (const Arch arch : plan.arches) {
           for (const Role role : {Role::kAttention, Role::kFfn}) {
             one["held"].push_back(json_of(bucket, role, arch));
           }
         }
         return one;
       })}};
  return json.dump(2) + "\n";
}

}  // namespace afdep::plan
