#include "generator/compile/compile.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "generator/compile/cubin.h"
#include "templates/embedded.h"

namespace afdep::compile {
namespace {

// The library is found and opened once; a failure is not kept, so that a long-lived process can be
// repaired.
Result<std::shared_ptr<const NvrtcLibrary>> shared_library() {
  static std::mutex mutex;
  static std::shared_ptr<const NvrtcLibrary> library;
  const std::scoped_lock lock(mutex);
  if (library != nullptr) return library;
  auto file = locate_nvrtc(NvrtcSearch::from_environment());
  AFDEP_RETURN_IF_FAILED(file);
  auto opened = NvrtcLibrary::open(*file);
  AFDEP_RETURN_IF_FAILED(opened);
  library = *opened;
  return library;
}

// The number in front of `unit` in "0 bytes stack frame, 8 bytes spill stores, 4 bytes spill
// loads"; 0 if not there.
int number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

}  // namespace

const std::vector<Header>& cuda_headers() {
  static const std::vector<Header> kHeaders = [] {
    std::vector<Header> all;
    for (const templates::File& file : templates::files()) {
      for (const std::string_view root : {"device/common/", "device/cuda/"}) {
        if (!file.path.starts_with(root)) continue;
        all.push_back({std::string(file.path.substr(root.size())), std::string(file.text)});
      }
    }
    std::ranges::sort(all, {}, &Header::name);
    return all;
  }();
  return kHeaders;
}

std::vector<std::string> nvrtc_options(std::string_view arch) {
  return {fmt::format("--gpu-architecture={}", arch), "--std=c++20",
          // Spills are only told in this report; parse_ptxas_log takes it out of the log again.
          "--ptxas-options=-v"};
}

PtxasReport parse_ptxas_log(std::string_view log) {
  PtxasReport report;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (line.starts_with("ptxas         .")) {  // continues "Function properties for ..."
      report.spill_bytes += number_before(line, " bytes spill stores");
      report.spill_bytes += number_before(line, " bytes spill loads");
    } else if (!line.starts_with("ptxas info") && !line.empty()) {
      report.remarks += line;
      report.remarks += '\n';
    }
  }
  return report;
}

Result<CompiledModule> compile(const KernelSource& source, std::string_view arch,
                               const CompileOptions& options) {
  if (std::ranges::find(supported_arches(), arch) == supported_arches().end()) {
    return Failure(ErrorCode::kArch, fmt::format("arch {} is not supported", arch),
                   fmt::format("the arches are {}", fmt::join(supported_arches(), ", ")));
  }
  auto library = shared_library();
  AFDEP_RETURN_IF_FAILED(library);
  auto output =
      (*library)->compile(source.file_name, source.text, options.headers, nvrtc_options(arch));
  AFDEP_RETURN_IF_FAILED(output);
  const PtxasReport report = parse_ptxas_log(output->log);
  const auto failed = [&](const std::string& why) {
    return Failure(
        ErrorCode::kToolchain, fmt::format("{} for {}: {}", source.file_name, arch, why),
        fmt::format(
            "emitted sources compile without a remark under the tested NVRTC 13.0; this is {}",
            (*library)->version()));
  };
  if (!output->compiled) return failed(fmt::format("{}\n{}", output->error, report.remarks));
  if (!report.remarks.empty()) return failed("NVRTC remarks\n" + report.remarks);

  auto kernels = read_cubin(output->cubin);
  AFDEP_RETURN_IF_FAILED(kernels);
  if (kernels->size() != 1 || kernels->front().symbol != source.symbol) {
    std::vector<std::string> names;
    for (const CubinKernel& kernel : *kernels) names.push_back(kernel.symbol);
    return failed(fmt::format("holds the kernels [{}], not exactly {}", fmt::join(names, ", "),
                              source.symbol));
  }
  const CubinKernel& kernel = kernels->front();
  return CompiledModule{.symbol = source.symbol,
                        .arch = std::string(arch),
                        .image = std::move(output->cubin),
                        .log = {},
                        .registers = kernel.registers,
                        .spill_bytes = report.spill_bytes,
                        .local_bytes = kernel.local_bytes,
                        .shared_bytes = kernel.shared_bytes};
}

}  // namespace afdep::compile
