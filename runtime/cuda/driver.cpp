#include "runtime/cuda/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace afdep::cuda {
namespace {

constexpr const char* kLibrary = "libcuda.so.1";
constexpr int kOldestVersion = 13000;
constexpr const char* kRemedy = "install NVIDIA driver 580 or newer, or run where there is a GPU";

Failure unusable(std::string message) {
  return {ErrorCode::kToolchain, std::move(message), kRemedy};
}

#define AFDEP_TEXT_OF(name) #name
#define AFDEP_SYMBOL_OF(name) AFDEP_TEXT_OF(name)

Result<Driver> open() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return unusable(fmt::format("no CUDA driver: looked for {}: {}", kLibrary, ::dlerror()));
  }
  Driver driver;
  const char* missing = nullptr;
#define AFDEP_LOAD(name)                                                                          \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, AFDEP_SYMBOL_OF(name))); \
  if (driver.name == nullptr && missing == nullptr) missing = AFDEP_SYMBOL_OF(name);
  AFDEP_CUDA_FUNCTIONS(AFDEP_LOAD)
#undef AFDEP_LOAD
  if (driver.cuDriverGetVersion != nullptr) driver.cuDriverGetVersion(&driver.version);
  if (driver.version < kOldestVersion) {
    return unusable(
        fmt::format("the CUDA driver is too old: {} supports CUDA {}.{}, afdep needs {}.{}",
                    kLibrary, driver.version / 1000, driver.version % 1000 / 10,
                    kOldestVersion / 1000, kOldestVersion % 1000 / 10));
  }
  if (missing != nullptr) {
    return unusable(fmt::format("the CUDA driver {} has no {}", kLibrary, missing));
  }
  ::setenv("CUDA_MODULE_LOADING", "EAGER", /*replace=*/0);
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*replace=*/0);
  if (const CUresult result = driver.cuInit(0); result != CUDA_SUCCESS) {
    Failure failed = failure(driver, result, "cuInit");
    return unusable(failed.diagnostics.front().message);
  }
  return driver;
}

}  // namespace

Result<const Driver*> open_driver() {
  static const Result<Driver> kDriver = open();  // once a process; the library stays open
  if (!kDriver.ok()) return kDriver.failure();
  return &*kDriver;
}

Failure failure(const Driver& driver, CUresult result, std::string_view call) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  std::string message =
      fmt::format("{} failed: {} ({})", call, name != nullptr ? name : std::to_string(result),
                  text != nullptr ? text : "unknown error");
  switch (result) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return {ErrorCode::kMemory, std::move(message)};
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_INVALIDATED:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
      return {ErrorCode::kInCapture, std::move(message), "do this outside a stream capture"};
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
      return {ErrorCode::kToolchain, std::move(message),
              "a kernel failed and took the CUDA context with it: restart the process, and run it "
              "under compute-sanitizer to find the kernel"};
    default:
      return {ErrorCode::kToolchain, std::move(message)};
  }
}

}  // namespace afdep::cuda
