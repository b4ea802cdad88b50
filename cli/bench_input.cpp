#include "cli/bench_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "cli/progress.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/spec/names.h"

namespace afdep::cli {

bool is_bundle(const std::string& name) {
  std::error_code unreadable;  // then it is not a folder
  return std::filesystem::is_directory(name, unreadable);
}

Result<bundle::Bundle> read_input_bundle(const std::string& name) {
  return bundle::read_bundle(name);
}

Result<bundle::Bundle> compile_spec(const std::string& name, std::string_view arch, bool trace) {
  Result<spec::Spec> spec = load_spec(name);
  if (!spec.ok()) return spec.failure();
  const std::optional<spec::Arch> known = spec::from_name<spec::Arch>(arch);
  if (!known) {
    return Failure(ErrorCode::kArch, fmt::format("this GPU is {}", arch),
                   "kernels are compiled for " + spec::join(spec::name_texts<spec::Arch>()));
  }
  spec->arch.value = {*known};
  Progress progress("compiling");
  GenerateOptions options;
  options.trace = trace;
  options.on_compiled = [&](int done, int total) { progress.show(done, total); };
  Result<Generated> generated = generate(*spec, options);
  if (!generated.ok()) return generated.failure();
  return std::move(generated->bundle);
}

}  // namespace afdep::cli
