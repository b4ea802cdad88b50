#include "generator/compile_all.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "generator/compile/cache.h"
#include "generator/compile/compile.h"
#include "generator/compile/nvrtc_library.h"
#include "runtime/support/check.h"

namespace afdep {
namespace {

struct Job {
  const KernelSource* source = nullptr;
  const plan::Kernel* kernel = nullptr;
  std::string_view arch;
};

std::vector<Job> jobs_of(const plan::ExchangePlan& plan, const std::vector<KernelSource>& sources) {
  std::vector<Job> jobs;
  std::size_t next = 0;
  for (const plan::BucketPlan& bucket : plan.buckets) {
    for (const plan::Kernel& kernel : bucket.kernels) {
      AFDEP_CHECK(next < sources.size() && sources[next].symbol == kernel.symbol,
                  "sources are not in the plan's order at " + kernel.symbol);
      for (const plan::Arch arch : plan.arches) {
        jobs.push_back({&sources[next], &kernel, plan::to_string(arch)});
      }
      ++next;
    }
  }
  return jobs;
}

Result<CompiledModule> compile_one(compile::ModuleCache& cache, const Job& job,
                                   const compile::CompileOptions& options) {
  Result<CompiledModule> module = cache.get(*job.source, job.arch, options);
  if (!module.ok()) return module;
  // Emitted kernels declare no static shared memory; the plan's is dynamic.
  const Diagnostics broken = compile::check_ceilings(
      *module, {.registers = job.kernel->register_ceiling, .shared_bytes = 0});
  if (!broken.empty()) return Failure(broken);
  return module;
}

Result<std::filesystem::path> cache_folder(const spec::Spec& spec) {
  if (!spec.cache_dir.value.empty()) return std::filesystem::path(spec.cache_dir.value);
  return compile::default_cache_folder();
}

}  // namespace

Result<CompiledAll> compile_all(const spec::Spec& spec, const plan::ExchangePlan& plan,
                                const std::vector<KernelSource>& sources, int threads,
                                const std::function<void(int done, int total)>& on_compiled) {
  const bool jit = spec.cache_mode.value == spec::CacheMode::kJit;
  CompiledAll all;
  if (jit) {
    const Result<std::filesystem::path> library =
        compile::locate_nvrtc(compile::NvrtcSearch::from_environment());
    if (!library.ok()) return library.failure();
    Result<std::string> identity = compile::nvrtc_identity(*library);
    if (!identity.ok()) return identity.failure();
    all.compiler = std::move(*identity);
  }
  const Result<std::filesystem::path> folder = cache_folder(spec);
  if (!folder.ok()) return folder.failure();
  compile::ModuleCache cache(*folder, jit ? compile::CacheMode::kJit : compile::CacheMode::kAot);
  const compile::CompileOptions options;

  const std::vector<Job> jobs = jobs_of(plan, sources);
  std::vector<std::optional<Result<CompiledModule>>> results(jobs.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;
  int done = 0;
  std::exception_ptr thrown;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size() && !stop; i = next++) {
      try {
        results[i] = compile_one(cache, jobs[i], options);
        const std::scoped_lock lock(mutex);
        ++done;
        if (on_compiled) on_compiled(done, static_cast<int>(jobs.size()));
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!thrown) thrown = std::current_exception();
        stop = true;
      }
    }
  };
  {
    std::vector<std::jthread> others;
    const auto useful = std::min(static_cast<std::size_t>(std::max(threads, 1)), jobs.size());
    for (std::size_t i = 1; i < useful; ++i) others.emplace_back(work);
    work();
  }
  if (thrown) std::rethrow_exception(thrown);

  Diagnostics wrong;
  for (std::optional<Result<CompiledModule>>& result : results) {
    if (result->ok()) {
      all.modules.push_back(std::move(**result));
      continue;
    }
    for (const Diagnostic& diagnostic : result->diagnostics()) {
      if (std::ranges::find(wrong, diagnostic) == wrong.end()) wrong.push_back(diagnostic);
    }
  }
  if (!wrong.empty()) return Failure(std::move(wrong));
  return all;
}

}  // namespace afdep
