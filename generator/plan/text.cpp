#include "generator/plan/text.h"

#include <fmt/format.h>

#include "generator/plan/resources.h"
#include "generator/plan/sizing.h"
#include "generator/plan/text_table.h"

namespace afdep::plan {
namespace {

template <typename T>
std::string number(T value) {
  return fmt::format("{}", value);
}

std::string on_off(bool value) { return value ? "on" : "off"; }

std::string range(int first, int count) {
  return count == 1 ? number(first) : fmt::format("{}..{}", first, first + count - 1);
}

bool is_exception(std::string_view name) {
  return name == "trace" || name == "all_ranks" || name == "entry_barrier" ||
         name == "exit_barrier" || name == "dummy_experts" || name == "separate_epilogues";
}

std::string print_ablation(const Ablation& ablation) {
  std::string text;
  const auto add = [&text](bool reverted, std::string_view name) {
    if (reverted) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  };
  add(ablation.entry_barrier, "entry_barrier");
  add(ablation.exit_barrier, "exit_barrier");
  add(ablation.dummy_experts, "dummy_experts");
  add(ablation.union_buffers, "union_buffers");
  add(ablation.separate_epilogues, "separate_epilogues");
  return text;
}

std::string print_facts(const ExchangePlan& plan) {
  std::string buckets;
  for (const BucketPlan& bucket : plan.buckets) {
    buckets += fmt::format("{}{}", buckets.empty() ? "" : ", ", bucket.bucket);
  }
  std::string arches;
  for (const Arch arch : plan.arches) {
    arches += fmt::format("{}{}", arches.empty() ? "" : ", ", to_string(arch));
  }
  TextTable table({"", ""});
  table.add({"digest", plan.spec_digest});
  table.add({"ranks", fmt::format("{} attention, {} ffn; {} ranks come first", plan.attention_ranks,
                                  plan.ffn_ranks, plan.ffn_first ? "ffn" : "attention")});
  table.add({"model", fmt::format("hidden {} (a row is {} bytes of bf16), {} experts, top-k {}",
                                  plan.hidden, plan.row_bytes, plan.experts, plan.top_k)});
  table.add({"capacity", fmt::format("{} tokens a source", plan.capacity)});
  table.add({"buckets", buckets});
  table.add({"routing", fmt::format("{} ids; bad ids: {}", to_string(plan.id_type),
                                    to_string(plan.route_check))});
  table.add(
      {"receive",
       fmt::format("expert-major, alignment {}, padding {}, host counts {}", plan.expert_alignment,
                   plan.zero_padding ? "zero" : "unspecified", on_off(plan.host_counts))});
  table.add({"collect", plan.has_view ? "into the caller's tensor, or read in place in region view"
                                      : "into the caller's tensor"});
  table.add({"graph capture", on_off(plan.capture)});
  table.add({"timeouts", fmt::format("device {} ms, host {} ms", plan.device_timeout_ms,
                                     plan.host_timeout_ms)});
  table.add({"arch", arches});
  if (plan.traced) table.add({"trace", "on: kernels record when warps pass steps"});
  if (plan.ablation.any()) table.add({"reverted", print_ablation(plan.ablation)});
  return fmt::format("plan of {}\n\n", plan.name) + table.print(2);
}

std::string print_ranks(const ExchangePlan& plan) {
  TextTable table({"world", "role", "index", "experts"});
  const auto add = [&](Role role) {
    const int count = role == Role::kFfn ? plan.ffn_ranks : plan.attention_ranks;
    std::string experts = "-";
    if (role == Role::kFfn) {
      const int each = plan.local_experts();
      experts = count == 1
                    ? range(0, each)
                    : fmt::format("{} each: rank i has [{} i, {} i + {})", each, each, each, each);
      if (each == 1 && count > 1) experts = "one each: rank i has expert i";
    }
    table.add({range(plan.world_rank(role, 0), count), std::string(to_string(role)),
               range(0, count), experts});
  };
  add(plan.ffn_first ? Role::kFfn : Role::kAttention);
  add(plan.ffn_first ? Role::kAttention : Role::kFfn);
  return "\nranks\n" + table.print(2);
}

std::string print_regions(const std::vector<Region>& regions) {
  TextTable table({"region", ">offset", ">bytes", ">halves", ">peers", ">items", ">item bytes",
                   ">peer stride", ">half stride"});
  for (const Region& region : regions) {
    table.add({region.name, number(region.offset), number(region.bytes()), number(region.halves),
               number(region.peers), number(region.items), number(region.item_bytes),
               number(region.peer_bytes), number(region.half_bytes)},
              region.purpose);
  }
  return table.print(2);
}

std::string print_layout(const RoleLayout& layout) {
  std::string text =
      fmt::format("\n{} window, {} bytes ({})\n", to_string(layout.role), layout.window_bytes,
                  human_bytes(static_cast<double>(layout.window_bytes)));
  text += print_regions(layout.window);
  if (layout.workspace.empty()) return text;
  text +=
      fmt::format("\n{} workspace, {} bytes ({}), private to a rank\n", to_string(layout.role),
                  layout.workspace_bytes, human_bytes(static_cast<double>(layout.workspace_bytes)));
  return text + print_regions(layout.workspace);
}

std::string print_registration(const ExchangePlan& plan) {
  const std::int64_t whole = union_window_bytes(plan);
  const double part = static_cast<double>(plan.window_bytes) / static_cast<double>(whole);
  TextTable table({"", ""});
  table.add({"every rank", fmt::format("{} bytes ({}), the larger role's window", plan.window_bytes,
                                       human_bytes(static_cast<double>(plan.window_bytes)))});
  table.add({"union sizing", fmt::format("{} bytes ({}), of which this is {:.0f} %", whole,
                                         human_bytes(static_cast<double>(whole)), 100 * part)});
  return "\nregistered\n" + table.print(2);
}

std::string print_summary(const BucketPlan& bucket) {
  const Traffic& traffic = bucket.traffic;
  std::string path;
  for (const Hop& hop : bucket.critical_path) {
    path += fmt::format("{}{} -({})-> {}", path.empty() ? "" : ", then ", to_string(hop.from),
                        hop.signal, to_string(hop.to));
  }
  TextTable table({"", ""});
  table.add({"critical path", fmt::format("{} hops: {}", bucket.critical_path.size(), path)});
  table.add({"wire", fmt::format("{} leave an attention rank, {} leave an ffn rank",
                                 human_bytes(traffic.dispatch_wire_bytes),
                                 human_bytes(traffic.reply_wire_bytes))});
  table.add({"memory", fmt::format("{} read and written by an attention rank, {} by an ffn rank",
                                   human_bytes(traffic.source_memory_bytes),
                                   human_bytes(traffic.worker_memory_bytes))});
  std::string floor = fmt::format("{:.2f} us = launches {:.2f} + hops {:.2f} + bytes {:.2f}",
                                  bucket.floor.total_us(), bucket.floor.launch_us,
                                  bucket.floor.hop_us, bucket.floor.bytes_us);
  if (bucket.floor.sync_us > 0) floor += fmt::format(" + syncs {:.2f}", bucket.floor.sync_us);
  table.add({"floor", floor});
  return table.print(2);
}

std::string print_signals(const BucketPlan& bucket) {
  TextTable table({"signal", "kind", "from", "to", "awaited in", "covers", ">lag"});
  for (const Signal& signal : bucket.signals) {
    const bool among_all = signal.among_all();
    table.add({signal.name, std::string(to_string(signal.kind)),
               std::string(among_all ? "every rank" : to_string(signal.from)),
               std::string(among_all ? "every rank" : to_string(signal.to)), signal.flag_region,
               signal.data_region.empty() ? "-" : signal.data_region,
               number(signal.generation_lag)});
  }
  return "\n" + table.print(2);
}

std::string print_launches(const BucketPlan& bucket) {
  TextTable table({"kernel", "role", ">grid", ">threads", ">shared", "launch bounds", ">registers",
                   "template"});
  for (const Kernel& kernel : bucket.kernels) {
    table.add({std::string(to_string(kernel.operation)), std::string(to_string(kernel.role)),
               number(kernel.grid), number(kernel.threads), number(kernel.shared_bytes),
               fmt::format("({}, {})", kernel.threads, kernel.blocks_per_sm),
               fmt::format("<= {}", kernel.register_ceiling), kernel.template_path});
  }
  return "\n" + table.print(2);
}

std::string print_held(const ExchangePlan& plan, const BucketPlan& bucket) {
  std::string text;
  for (const Arch arch : plan.arches) {
    std::vector<NamedResources> rows;
    for (const Role role : {Role::kAttention, Role::kFfn}) {
      rows.push_back({std::string(to_string(role)), resources_of(bucket, role, sm_count_of(arch))});
    }
    text += "\n" + print_resources(rows, gpu_name_of(arch), sm_count_of(arch),
                                   /*registers_at_most=*/true);
  }
  return text;
}

std::string print_kernel(const Kernel& kernel) {
  std::string text = fmt::format("\n  {}: {}\n", to_string(kernel.operation), kernel.symbol);
  TextTable steps({">", "", "", ""});
  int count = 0;
  for (const Step& step : kernel.steps) {
    steps.add({number(++count), std::string(to_string(step.kind)), step.signal, step.text});
  }
  text += steps.print(4);
  if (!kernel.constants.empty()) {
    TextTable constants({"", ">", ""});
    for (const Constant& constant : kernel.constants) {
      constants.add({constant.name, number(constant.value), constant.why});
    }
    text += constants.print(4);
  }
  if (!kernel.structure.empty()) {
    std::string chosen;
    for (const auto& [name, value] : kernel.structure) {
      if (!value && is_exception(name)) continue;  // what all but plans for measurement leave out
      chosen += fmt::format("{}{}{}", chosen.empty() ? "" : ", ", value ? "" : "not ", name);
    }
    if (!chosen.empty()) {
      TextTable structure({"", ""});
      structure.add({"structure", chosen});
      text += structure.print(4);
    }
  }
  return text;
}

std::string print_bucket(const ExchangePlan& plan, const BucketPlan& bucket) {
  const std::string title =
      fmt::format("bucket {}: {}, {} receive rows an ffn rank", bucket.bucket,
                  to_string(bucket.protocol), plan.receive_rows(bucket.bucket));
  std::string text = fmt::format("\n{}\n{}\n", title, std::string(title.size(), '-'));
  text += print_summary(bucket);
  text += print_signals(bucket);
  text += print_launches(bucket);
  text += print_held(plan, bucket);
  for (const Kernel& kernel : bucket.kernels) text += print_kernel(kernel);
  return text;
}

}  // namespace

std::string print(const ExchangePlan& plan) {
  std::string text = print_facts(plan) + print_ranks(plan);
  text += print_layout(plan.attention) + print_layout(plan.ffn) + print_registration(plan);
  for (const BucketPlan& bucket : plan.buckets) text += print_bucket(plan, bucket);
  return text;
}

}  // namespace afdep::plan
