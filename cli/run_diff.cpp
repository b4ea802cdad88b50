// afdep-gen diff: how the emitted sources of two specs differ.
#include <fmt/format.h>

#include <map>

#include "cli/console.h"
#include "cli/gen_commands.h"
#include "cli/spec_input.h"
#include "cli/text_diff.h"
#include "generator/generate.h"

namespace afdep::cli {
namespace {

struct Sources {
  std::string name;
  std::map<std::string, std::string> texts;  // by file name: role, operation and bucket
};

// Emits under `name` if it is not empty, so that two specs do not differ in every symbol.
Result<Sources> emit_sources(const std::string& spec_name, const std::string& name) {
  Result<spec::Spec> spec = load_spec(spec_name);
  if (!spec.ok()) return spec.failure();
  Sources sources{.name = spec->name.value, .texts = {}};
  if (!name.empty()) spec->name.value = name;
  const Result<Generated> generated = generate(*spec, {.emit_only = true});
  if (!generated.ok()) return generated.failure();
  for (const KernelSource& source : generated->sources) {
    sources.texts[source.file_name] = source.text;
  }
  return sources;
}

}  // namespace

int run_diff(const DiffArguments& arguments) {
  Diagnostics wrong;
  const Result<Sources> old_sources = emit_sources(arguments.old_spec, "");
  if (!old_sources.ok()) wrong = old_sources.diagnostics();
  const Result<Sources> new_sources =
      emit_sources(arguments.new_spec, old_sources.ok() ? old_sources->name : "");
  if (!new_sources.ok()) {
    wrong.insert(wrong.end(), new_sources.diagnostics().begin(), new_sources.diagnostics().end());
  }
  if (!wrong.empty()) return report_failure(wrong, false);

  if (old_sources->name != new_sources->name) {
    print_out(fmt::format("# {} and {}, both emitted as {}\n", old_sources->name, new_sources->name,
                          old_sources->name));
  }
  const auto text_of = [](const Sources& sources, const std::string& file) -> std::string_view {
    const auto found = sources.texts.find(file);
    return found == sources.texts.end() ? std::string_view() : std::string_view(found->second);
  };
  std::map<std::string, std::string> files = old_sources->texts;
  files.insert(new_sources->texts.begin(), new_sources->texts.end());
  for (const auto& [file, unused] : files) {
    const bool in_old = old_sources->texts.contains(file);
    const bool in_new = new_sources->texts.contains(file);
    print_out(unified_diff(text_of(*old_sources, file), text_of(*new_sources, file),
                           in_old ? "a/" + file : "/dev/null", in_new ? "b/" + file : "/dev/null",
                           Spaces::kIgnoreRuns));
  }
  return kExitOk;
}

}  // namespace afdep::cli
