#include "generator/emit/emit.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "generator/emit/engine.h"
#include "generator/emit/hygiene.h"
#include "runtime/support/check.h"
#include "templates/embedded.h"

namespace afdep::emit {
namespace {

// Byte counts and offsets may pass 2^31; everything else is an int.
std::string_view type_of(const std::string& name) {
  return name.ends_with("Bytes") || name.ends_with("Offset") ? "int64_t" : "int";
}

// The declarations are padded to one width, so that the reasons stand in a column.
std::vector<Record> constants_of(const plan::Kernel& kernel) {
  std::vector<std::string> declarations;
  std::size_t width = 0;
  for (const plan::Constant& constant : kernel.constants) {
    declarations.push_back(fmt::format("constexpr {} {} = {};", type_of(constant.name),
                                       constant.name, constant.value));
    width = std::max(width, declarations.back().size());
  }
  std::vector<Record> records;
  for (std::size_t i = 0; i < declarations.size(); ++i) {
    declarations[i].resize(width, ' ');
    records.push_back({{"declaration", declarations[i]}, {"why", kernel.constants[i].why}});
  }
  return records;
}

std::vector<Record> workers_of(const plan::ExchangePlan& plan) {
  std::vector<Record> records;
  for (int worker = 0; worker < plan.ffn_ranks; ++worker) records.push_back({{"index", worker}});
  return records;
}

std::string_view route_check(plan::RouteCheck check) {
  switch (check) {
    case plan::RouteCheck::kReport:
      return "RouteCheck::kReport";
    case plan::RouteCheck::kTrap:
      return "RouteCheck::kTrap";
    case plan::RouteCheck::kOff:
      return "RouteCheck::kOff";
  }
  return {};
}

// Exactly what the kernel's template uses: the engine refuses an argument that no line uses.
Arguments arguments_of(const plan::ExchangePlan& plan, const plan::Kernel& kernel) {
  Arguments arguments{{"name", plan.name},
                      {"symbol", kernel.symbol},
                      {"bucket", kernel.bucket},
                      {"constants", constants_of(kernel)}};
  for (const auto& [name, holds] : kernel.structure) {
    arguments.add(name, holds);
  }
  // Templates of epilogues know no trace but in what they share with receive and collect.
  if (!kernel.structure.contains("trace") && !plan::is_epilogue(kernel.operation)) {
    arguments.add("trace", false);
  }
  if (kernel.template_path.ends_with("_chunked.cu.in") &&
      kernel.operation != plan::Operation::kDispatch &&
      kernel.operation != plan::Operation::kReceive) {
    arguments.add("protocol", plan::to_string(kernel.protocol));
  }
  const bool first = kernel.operation == plan::Operation::kDispatch ||
                     kernel.operation == plan::Operation::kReceive;
  if (kernel.structure.contains("entry_barrier")) {
    arguments.add("part", first ? "kFirstPart" : "kSecondPart");
  }
  switch (kernel.operation) {
    case plan::Operation::kDispatch:
      arguments.add("id_type", plan.id_type == plan::IdType::kInt32 ? "int32_t" : "int64_t");
      arguments.add("route_check", route_check(plan.route_check));
      if (kernel.structure.at("spelled")) arguments.add("workers", workers_of(plan));
      break;
    case plan::Operation::kCollect:
    case plan::Operation::kReduce:
      if (!kernel.structure.at("single_reply")) {
        arguments.add("by_slot", plan.ffn_ranks > plan.top_k ? "true" : "false");
      }
      break;
    case plan::Operation::kIdleExpand:
    case plan::Operation::kIdleReduce:
      arguments.add("role", plan::to_string(kernel.role));
      arguments.add("operation", plan::to_string(kernel.operation));
      arguments.add("protocol", plan::to_string(kernel.protocol));
      arguments.add(
          "args", kernel.operation == plan::Operation::kIdleExpand ? "DispatchArgs" : "ReplyArgs");
      break;
    case plan::Operation::kReceive:
    case plan::Operation::kReply:
    case plan::Operation::kCollectView:
    case plan::Operation::kExpand:
      break;
  }
  return arguments;
}

}  // namespace

std::vector<KernelSource> emit(const plan::ExchangePlan& plan, Coverage* coverage) {
  std::vector<KernelSource> sources;
  for (const plan::BucketPlan& bucket : plan.buckets) {
    for (const plan::Kernel& kernel : bucket.kernels) {
      Result<std::string> text =
          expand(kernel.template_path, arguments_of(plan, kernel), templates::find, coverage);
      AFDEP_CHECK(text.ok(), to_string(text.diagnostics()));
      KernelSource source;
      source.symbol = kernel.symbol;
      source.file_name = fmt::format("{}_{}_b{}.cu", plan::to_string(kernel.role),
                                     plan::to_string(kernel.operation), kernel.bucket);
      source.text = std::move(*text);
      const auto hygiene = check_emitted(source.text, source.file_name);
      AFDEP_CHECK(hygiene.empty(), source.file_name + ": " + to_string(hygiene));
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

}  // namespace afdep::emit
