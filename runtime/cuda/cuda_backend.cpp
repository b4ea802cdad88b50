#include "runtime/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/cuda/driver.h"

namespace afdep {
namespace {

constexpr int kNarrowPercent = 28;  // of an SM's shared memory: 64 of 228 KiB
constexpr int kWidePercent = 100;

using cuda::Driver;
using cuda::failure;

CUstream raw(Stream stream) { return reinterpret_cast<CUstream>(stream); }
CUevent raw(Event event) { return reinterpret_cast<CUevent>(event); }
CUgraphExec raw(Graph graph) { return reinterpret_cast<CUgraphExec>(graph); }
CUdeviceptr raw(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

template <typename Handle>
Handle wrap(void* handle) {
  return static_cast<Handle>(reinterpret_cast<std::uintptr_t>(handle));
}

class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(const Driver& driver, const KernelImage& image, CUmodule module, CUfunction function,
             std::size_t args_bytes)
      : driver_(driver),
        symbol_(image.symbol),
        image_(image.image.begin(), image.image.end()),
        module_(module),
        function_(function),
        args_bytes_(args_bytes) {}

  [[nodiscard]] std::string_view symbol() const override { return symbol_; }
  [[nodiscard]] int blocks_per_sm(int threads, std::size_t shared_bytes) const override {
    int blocks = 0;
    driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function_, threads, shared_bytes);
    return blocks;
  }

  [[nodiscard]] bool is_from(const KernelImage& image) const {
    return symbol_ == image.symbol && std::ranges::equal(image_, image.image);
  }
  [[nodiscard]] CUmodule module() const { return module_; }
  [[nodiscard]] CUfunction function() const { return function_; }
  [[nodiscard]] std::size_t args_bytes() const { return args_bytes_; }

 private:
  const Driver& driver_;
  std::string symbol_;
  std::vector<std::byte> image_;
  CUmodule module_;
  CUfunction function_;
  std::size_t args_bytes_;
};

class CudaBackend : public Backend {
 public:
  CudaBackend(const Driver& driver, CUdevice device, CUcontext context)
      : driver_(driver), device_(device), context_(context) {}

  ~CudaBackend() override {
    enter();
    for (const auto& kernel : kernels_) driver_.cuModuleUnload(kernel->module());
    if (copy_stream_ != nullptr) driver_.cuStreamDestroy(copy_stream_);
    driver_.cuDevicePrimaryCtxRelease(device_);
  }

  // Reads what never changes. Call once.
  Result<void> initialize() {
    enter();
    std::array<char, 256> name{};
    AFDEP_CUDA(driver_, cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, device_);
    device_name_ = name.data();
    const Result<int> major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const Result<int> minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    const Result<int> sms = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    const Result<int> threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    const Result<int> ctas = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
    const Result<int> registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    const Result<int> shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    const Result<int> reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
    const Result<int> most_shared =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    for (const auto* each :
         {&major, &minor, &sms, &threads, &ctas, &registers, &shared, &reserved, &most_shared}) {
      if (!each->ok()) return each->failure();
    }
    arch_ = fmt::format("sm_{}{}a", *major, *minor);
    sm_count_ = *sms;
    most_shared_ = *most_shared;
    limits_ = {.ctas = *ctas,
               .threads = *threads,
               .registers = *registers,
               .shared_bytes = *shared,
               .narrow_shared_bytes = std::int64_t{*shared} * kNarrowPercent / 100,
               .reserved_shared_bytes = *reserved};
    // Never the default stream: that one waits for kernels of other streams, which may wait for
    // this copy.
    AFDEP_CUDA(driver_, cuStreamCreate, &copy_stream_, CU_STREAM_NON_BLOCKING);
    return {};
  }

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] std::string_view device_name() const override { return device_name_; }
  [[nodiscard]] std::string_view arch() const override { return arch_; }
  [[nodiscard]] int sm_count() const override { return sm_count_; }
  [[nodiscard]] std::optional<SmLimits> sm_limits() const override { return limits_; }

  Result<void*> allocate(std::size_t bytes) override {
    enter();
    CUdeviceptr memory = 0;
    const std::size_t asked = bytes == 0 ? 1 : bytes;
    if (const CUresult result = driver_.cuMemAlloc(&memory, asked); result != CUDA_SUCCESS) {
      return no_memory(result, "cuMemAlloc", bytes);
    }
    auto* const pointer = reinterpret_cast<void*>(memory);
    if (Result<void> zeroed = fill(pointer, 0, asked); !zeroed.ok()) {
      free(pointer);
      return zeroed.failure();
    }
    return pointer;
  }

  void free(void* memory) override {
    enter();
    driver_.cuMemFree(raw(memory));
  }

  Result<HostMapped> allocate_host_mapped(std::size_t bytes) override {
    enter();
    HostMapped memory;
    if (const CUresult result = driver_.cuMemHostAlloc(
            &memory.host, bytes, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE);
        result != CUDA_SUCCESS) {
      return no_memory(result, "cuMemHostAlloc", bytes);
    }
    CUdeviceptr device = 0;
    if (const CUresult result = driver_.cuMemHostGetDevicePointer(&device, memory.host, 0);
        result != CUDA_SUCCESS) {
      driver_.cuMemFreeHost(memory.host);
      return failure(driver_, result, "cuMemHostGetDevicePointer");
    }
    memory.device = reinterpret_cast<void*>(device);
    std::fill_n(static_cast<std::byte*>(memory.host), bytes, std::byte{0});
    return memory;
  }

  void free_host_mapped(const HostMapped& memory) override {
    enter();
    driver_.cuMemFreeHost(memory.host);
  }

  [[nodiscard]] bool owns(const void* memory) const override {
    enter();
    CUmemorytype type{};
    int ordinal = -1;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* answers[] = {&type, &ordinal};
    return driver_.cuPointerGetAttributes(2, wanted, answers, raw(memory)) == CUDA_SUCCESS &&
           type == CU_MEMORYTYPE_DEVICE && ordinal == device_;
  }

  Result<void> copy_to_device(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    enter();
    AFDEP_CUDA(driver_, cuMemcpyHtoDAsync, raw(to), from, bytes, copy_stream_);
    AFDEP_CUDA(driver_, cuStreamSynchronize, copy_stream_);
    return {};
  }

  Result<void> copy_to_host(void* to, const void* from, std::size_t bytes) override {
    if (bytes == 0) return {};
    enter();
    AFDEP_CUDA(driver_, cuMemcpyDtoHAsync, to, raw(from), bytes, copy_stream_);
    AFDEP_CUDA(driver_, cuStreamSynchronize, copy_stream_);
    return {};
  }

  Result<void> fill(void* memory, std::uint8_t byte, std::size_t bytes) override {
    if (bytes == 0) return {};
    enter();
    AFDEP_CUDA(driver_, cuMemsetD8Async, raw(memory), byte, bytes, copy_stream_);
    AFDEP_CUDA(driver_, cuStreamSynchronize, copy_stream_);
    return {};
  }

  Result<void> copy_on_stream(void* to, const void* from, std::size_t bytes,
                              Stream stream) override {
    if (bytes == 0) return {};
    enter();
    AFDEP_CUDA(driver_, cuMemcpyAsync, raw(to), raw(from), bytes, raw(stream));
    return {};
  }

  Result<Stream> create_stream() override {
    enter();
    CUstream stream = nullptr;
    AFDEP_CUDA(driver_, cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    return wrap<Stream>(stream);
  }

  void destroy_stream(Stream stream) override {
    enter();
    driver_.cuStreamDestroy(raw(stream));
  }

  Result<void> synchronize(Stream stream) override {
    enter();
    AFDEP_CUDA(driver_, cuStreamSynchronize, raw(stream));
    return {};
  }

  Result<void> synchronize_all() override {
    enter();
    AFDEP_CUDA(driver_, cuCtxSynchronize);
    return {};
  }

  [[nodiscard]] bool is_capturing(Stream stream) const override {
    enter();
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return driver_.cuStreamIsCapturing(raw(stream), &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
  }

  Result<Event> create_event() override {
    enter();
    CUevent event = nullptr;
    AFDEP_CUDA(driver_, cuEventCreate, &event, CU_EVENT_DEFAULT);
    return wrap<Event>(event);
  }

  void destroy_event(Event event) override {
    enter();
    driver_.cuEventDestroy(raw(event));
  }

  Result<void> record(Event event, Stream stream) override {
    enter();
    AFDEP_CUDA(driver_, cuEventRecord, raw(event), raw(stream));
    return {};
  }

  Result<void> wait(Event event, Stream stream) override {
    enter();
    AFDEP_CUDA(driver_, cuStreamWaitEvent, raw(stream), raw(event), CU_EVENT_WAIT_DEFAULT);
    return {};
  }

  Result<std::chrono::nanoseconds> elapsed(Event from, Event to) override {
    enter();
    float milliseconds = 0;
    AFDEP_CUDA(driver_, cuEventElapsedTime, &milliseconds, raw(from), raw(to));
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double, std::milli>(milliseconds));
  }

  // One module a cubin, however many ranks and buffers of this process use it.
  Result<const LoadedKernel*> load(const KernelImage& image) override {
    enter();
    const std::scoped_lock lock(mutex_);
    AFDEP_RETURN_IF_FAILED(agree_on_split(image));
    for (const auto& kernel : kernels_) {
      if (kernel->is_from(image)) return kernel.get();
    }
    const auto named = [&](CUresult result, const char* call) {
      Failure failed = failure(driver_, result, call);
      failed.diagnostics.front().message += fmt::format(" for kernel {}", image.symbol);
      return failed;
    };
    CUmodule module = nullptr;
    if (const CUresult result = driver_.cuModuleLoadData(&module, image.image.data());
        result != CUDA_SUCCESS) {
      return named(result, "cuModuleLoadData");
    }
    CUfunction function = nullptr;
    const char* call = "cuModuleGetFunction";
    CUresult result = driver_.cuModuleGetFunction(&function, module, image.symbol.c_str());
    if (result == CUDA_SUCCESS) {
      // Whatever the loading mode, the code is on the device when this returns.
      call = "cuFuncLoad";
      result = driver_.cuFuncLoad(function);
    }
    std::size_t offset = 0;
    std::size_t args_bytes = 0;
    if (result == CUDA_SUCCESS) {
      call = "cuFuncGetParamInfo";
      result = driver_.cuFuncGetParamInfo(function, 0, &offset, &args_bytes);
    }
    int static_shared = 0;
    if (result == CUDA_SUCCESS) {
      call = "cuFuncGetAttribute";
      result =
          driver_.cuFuncGetAttribute(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
    }
    if (result == CUDA_SUCCESS) {
      call = "cuFuncSetAttribute";
      result = driver_.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                          most_shared_ - static_shared);
    }
    if (result == CUDA_SUCCESS) {
      result = driver_.cuFuncSetAttribute(
          function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, shared_percent_);
    }
    if (result != CUDA_SUCCESS) {
      driver_.cuModuleUnload(module);
      return named(result, call);
    }
    kernels_.push_back(std::make_unique<CudaKernel>(driver_, image, module, function, args_bytes));
    return kernels_.back().get();
  }

  Result<void> launch(const Launch& launch, Stream stream) override {
    enter();
    const auto& kernel = static_cast<const CudaKernel&>(*launch.kernel);
    AFDEP_CHECK(kernel.args_bytes() == launch.args_bytes,
                fmt::format("{} takes {} bytes of arguments, not {}", kernel.symbol(),
                            kernel.args_bytes(), launch.args_bytes));
    CUlaunchAttribute serialization{};
    serialization.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    serialization.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = static_cast<unsigned>(launch.grid);
    config.gridDimY = 1;
    config.gridDimZ = 1;
    config.blockDimX = static_cast<unsigned>(launch.threads);
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
    config.hStream = raw(stream);
    config.attrs = &serialization;
    config.numAttrs = launch.programmatic ? 1 : 0;
    void* parameters[] = {const_cast<void*>(launch.args)};
    const CUresult result =
        driver_.cuLaunchKernelEx(&config, kernel.function(), parameters, /*extra=*/nullptr);
    if (result == CUDA_SUCCESS) return {};
    Failure failed = failure(driver_, result, "cuLaunchKernelEx");
    failed.diagnostics.front().message +=
        fmt::format(" for kernel {} of rank {} ({} x {} threads, {} bytes of shared memory)",
                    kernel.symbol(), launch.rank, launch.grid, launch.threads, launch.shared_bytes);
    return failed;
  }

  Result<void> begin_capture(Stream stream) override {
    enter();
    AFDEP_CUDA(driver_, cuStreamBeginCapture, raw(stream), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    return {};
  }

  Result<Graph> end_capture(Stream stream) override {
    enter();
    CUgraph graph = nullptr;
    AFDEP_CUDA(driver_, cuStreamEndCapture, raw(stream), &graph);
    CUgraphExec executable = nullptr;
    const CUresult result = driver_.cuGraphInstantiate(&executable, graph, 0);
    driver_.cuGraphDestroy(graph);
    if (result != CUDA_SUCCESS) return failure(driver_, result, "cuGraphInstantiate");
    // Uploaded now: a first launch that uploads could wait behind peers that already spin.
    CUresult uploaded = driver_.cuGraphUpload(executable, raw(stream));
    if (uploaded == CUDA_SUCCESS) uploaded = driver_.cuStreamSynchronize(raw(stream));
    if (uploaded != CUDA_SUCCESS) {
      driver_.cuGraphExecDestroy(executable);
      return failure(driver_, uploaded, "cuGraphUpload");
    }
    return wrap<Graph>(executable);
  }

  Result<void> replay(Graph graph, Stream stream) override {
    enter();
    AFDEP_CUDA(driver_, cuGraphLaunch, raw(graph), raw(stream));
    return {};
  }

  void destroy_graph(Graph graph) override {
    enter();
    driver_.cuGraphExecDestroy(raw(graph));
  }

 private:
  // All kernels of ours ask for one split, or one could not join another whatever is free. Shared
  // memory that nobody needs is taken from L1, which costs crowded SMs dearly.
  Result<void> agree_on_split(const KernelImage& image) {
    if (shared_percent_ == kWidePercent || image.split == SharedSplit::kAny) return {};
    if (image.split == SharedSplit::kNarrow) {
      if (!narrow_cta_bytes_) narrow_cta_bytes_ = image.cta_shared_bytes;
      if (*narrow_cta_bytes_ == image.cta_shared_bytes) return {};
    }
    shared_percent_ = kWidePercent;
    for (const auto& kernel : kernels_) {
      AFDEP_CUDA(driver_, cuFuncSetAttribute, kernel->function(),
                 CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, shared_percent_);
    }
    return {};
  }

  // Calls come from any thread, and the context is a property of a thread.
  void enter() const {
    CUcontext current = nullptr;
    driver_.cuCtxGetCurrent(&current);
    if (current != context_) driver_.cuCtxSetCurrent(context_);
  }

  [[nodiscard]] Result<int> attribute(CUdevice_attribute which) const {
    int value = 0;
    AFDEP_CUDA(driver_, cuDeviceGetAttribute, &value, which, device_);
    return value;
  }

  Failure no_memory(CUresult result, const char* call, std::size_t bytes) {
    Failure failed = failure(driver_, result, call);
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    driver_.cuMemGetInfo(&free_bytes, &total_bytes);
    failed.diagnostics.front().message +=
        fmt::format(": asked for {} bytes; {} of {} are free on {}", bytes, free_bytes, total_bytes,
                    device_name_);
    if (failed.diagnostics.front().code == ErrorCode::kMemory) {
      failed.diagnostics.front().note = "lower capacity.tokens_per_rank, or free GPU memory";
    }
    return failed;
  }

  const Driver& driver_;
  CUdevice device_;
  CUcontext context_;
  CUstream copy_stream_ = nullptr;
  std::string device_name_;
  std::string arch_;
  int sm_count_ = 0;
  // What kernels ask for; see agree_on_split().
  int shared_percent_ = kNarrowPercent;
  std::optional<std::size_t> narrow_cta_bytes_;  // of every CTA of the bundles loaded so far
  int most_shared_ = 0;                          // bytes a CTA may ask for
  SmLimits limits_;
  std::mutex mutex_;  // of kernels_
  std::vector<std::unique_ptr<CudaKernel>> kernels_;
};

}  // namespace

Result<std::unique_ptr<Backend>> make_cuda_backend(int device) {
  const Result<const Driver*> opened = cuda::open_driver();
  if (!opened.ok()) return opened.failure();
  const Driver& driver = **opened;
  int count = 0;
  AFDEP_CUDA(driver, cuDeviceGetCount, &count);
  if (device < 0 || device >= count) {
    return Failure(ErrorCode::kToolchain,
                   fmt::format("no CUDA device {}: this machine shows {}", device, count),
                   "see nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  CUdevice handle = 0;
  AFDEP_CUDA(driver, cuDeviceGet, &handle, device);
  CUcontext context = nullptr;
  AFDEP_CUDA(driver, cuDevicePrimaryCtxRetain, &context, handle);
  auto backend = std::make_unique<CudaBackend>(driver, handle, context);
  AFDEP_RETURN_IF_FAILED(backend->initialize());
  return std::unique_ptr<Backend>(std::move(backend));
}

}  // namespace afdep
