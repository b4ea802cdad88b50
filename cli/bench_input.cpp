#include "cli/bench_input.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/console.h"
#include "cli/progress.h"
#include "cli/spec_input.h"
#include "generator/generate.h"
#include "generator/spec/names.h"
#include "generator/tune/tuned_spec.h"
#include "runtime/cuda/cuda_backend.h"

namespace afdep::cli {

namespace {

Result<bundle::Bundle> compile(spec::Spec spec, std::string_view arch, bool trace) {
  const std::optional<spec::Arch> known = spec::from_name<spec::Arch>(arch);
  if (!known) {
    return Failure(ErrorCode::kArch, fmt::format("this GPU is {}", arch),
                   "kernels are compiled for " + spec::join(spec::name_texts<spec::Arch>()));
  }
  spec.arch.value = {*known};
  Progress progress("compiling");
  GenerateOptions options;
  options.trace = trace;
  options.on_compiled = [&](int done, int total) { progress.show(done, total); };
  Result<Generated> generated = generate(spec, options);
  if (!generated.ok()) return generated.failure();
  return std::move(generated->bundle);
}

}  // namespace

Result<BenchInput> open_input(const std::string& name, bool trace) {
  std::error_code unreadable;  // then it is not a folder
  if (std::filesystem::is_directory(name, unreadable)) {
    Result<bundle::Bundle> bundle = bundle::read_bundle(name);
    if (!bundle.ok()) return bundle.failure();
    Result<std::unique_ptr<Backend>> gpu = make_cuda_backend();
    if (!gpu.ok()) return gpu.failure();
    return BenchInput{.gpu = std::move(*gpu), .bundle = std::move(*bundle)};
  }
  Result<spec::Spec> spec = load_spec(name);
  if (!spec.ok()) return spec.failure();
  Result<std::unique_ptr<Backend>> gpu = make_cuda_backend();
  if (!gpu.ok()) return gpu.failure();
  print_error(tune::tuned_elsewhere(*spec, (*gpu)->device_name()));
  Result<bundle::Bundle> bundle = compile(std::move(*spec), (*gpu)->arch(), trace);
  if (!bundle.ok()) return bundle.failure();
  return BenchInput{.gpu = std::move(*gpu), .bundle = std::move(*bundle)};
}

}  // namespace afdep::cli
