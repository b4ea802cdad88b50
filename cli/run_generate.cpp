// afdep-gen SPEC -o DIR: spec to bundle.
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "cli/console.h"
#include "cli/deferred_signals.h"
#include "cli/gen_commands.h"
#include "cli/progress.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/spec/names.h"

namespace afdep::cli {
namespace {

Result<void> set_arches(spec::Spec& spec, const std::vector<std::string>& names) {
  std::vector<spec::Arch> arches;
  Diagnostics wrong;
  for (const std::string& name : names) {
    const std::optional<spec::Arch> arch = spec::from_name<spec::Arch>(name);
    if (!arch) {
      wrong.push_back({ErrorCode::kArch,
                       {},
                       fmt::format("--arch {} is not an architecture", name.empty() ? "''" : name),
                       "known are " + spec::join(spec::name_texts<spec::Arch>())});
    } else if (std::ranges::find(arches, *arch) != arches.end()) {
      wrong.push_back({ErrorCode::kArch,
                       {},
                       fmt::format("--arch names {} twice", name),
                       "name each architecture once"});
    } else {
      arches.push_back(*arch);
    }
  }
  if (!wrong.empty()) return Failure(std::move(wrong));
  if (!arches.empty()) spec.arch.value = std::move(arches);
  return {};
}

Result<Generated> generate_into(const GenerateArguments& arguments) {
  Result<spec::Spec> spec = load_spec(arguments.spec);
  if (!spec.ok()) return spec.failure();
  AFDEP_RETURN_IF_FAILED(set_arches(*spec, arguments.arches));
  Result<Generated> generated = [&] {
    Progress progress("compiling");
    return generate(*spec,
                    {.emit_only = arguments.emit_only,
                     .trace = arguments.trace,
                     .on_compiled = [&](int done, int total) { progress.show(done, total); }});
  }();
  if (!generated.ok()) return generated.failure();
  const DeferredSignals deferred;  // a folder that is half-written would stay behind
  AFDEP_RETURN_IF_FAILED(bundle::write_bundle(arguments.out, generated->bundle));
  return generated;
}

nlohmann::json describe(const Generated& generated) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelSource& source : generated.sources) {
    nlohmann::json cubins = nlohmann::json::array();
    for (const CompiledModule& module : generated.modules) {
      if (module.symbol != source.symbol) continue;
      cubins.push_back({{"arch", module.arch},
                        {"bytes", module.image.size()},
                        {"registers", module.registers},
                        {"shared_bytes", module.shared_bytes}});
    }
    kernels.push_back(
        {{"symbol", source.symbol}, {"source", source.file_name}, {"cubins", cubins}});
  }
  return kernels;
}

}  // namespace

int run_generate(const GenerateArguments& arguments) {
  const auto start = std::chrono::steady_clock::now();
  const Result<Generated> generated = generate_into(arguments);
  if (!generated.ok()) return report_failure(generated.diagnostics(), arguments.json);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const plan::ExchangePlan& plan = generated->plan;
  if (arguments.json) {
    const nlohmann::json report{{"ok", true},
                                {"bundle", arguments.out},
                                {"name", plan.name},
                                {"digest", plan.spec_digest},
                                {"kernels", describe(*generated)},
                                {"seconds", seconds}};
    print_out(report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    return kExitOk;
  }
  std::string arches;
  for (const plan::Arch arch : plan.arches) arches += fmt::format(", {}", plan::to_string(arch));
  print_out(fmt::format("{}: {}, {} kernels{}, {:.1f} s\n", arguments.out, plan.name,
                        generated->sources.size(), arguments.emit_only ? ", sources only" : arches,
                        seconds));
  return kExitOk;
}

}  // namespace afdep::cli
