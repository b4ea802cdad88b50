// The CUDA driver, opened at run time: a program that uses it starts on machines that have none.
// Private to runtime/cuda.
#pragma once

#include <cuda.h>

#include <string_view>

#include "runtime/support/result.h"

// Every entry point that the backend calls. cuda.h maps some to a newer version by macro; the
// expansion names the symbol.
#define AFDEP_CUDA_FUNCTIONS(X)                  \
  X(cuInit)                                      \
  X(cuDriverGetVersion)                          \
  X(cuGetErrorName)                              \
  X(cuGetErrorString)                            \
  X(cuDeviceGetCount)                            \
  X(cuDeviceGet)                                 \
  X(cuDeviceGetName)                             \
  X(cuDeviceGetAttribute)                        \
  X(cuDevicePrimaryCtxRetain)                    \
  X(cuDevicePrimaryCtxRelease)                   \
  X(cuCtxGetCurrent)                             \
  X(cuCtxSetCurrent)                             \
  X(cuCtxSynchronize)                            \
  X(cuMemAlloc)                                  \
  X(cuMemFree)                                   \
  X(cuMemGetInfo)                                \
  X(cuMemHostAlloc)                              \
  X(cuMemHostGetDevicePointer)                   \
  X(cuMemFreeHost)                               \
  X(cuMemcpyHtoDAsync)                           \
  X(cuMemcpyDtoHAsync)                           \
  X(cuMemcpyAsync)                               \
  X(cuMemsetD8Async)                             \
  X(cuPointerGetAttributes)                      \
  X(cuStreamCreate)                              \
  X(cuStreamDestroy)                             \
  X(cuStreamSynchronize)                         \
  X(cuStreamWaitEvent)                           \
  X(cuStreamIsCapturing)                         \
  X(cuStreamBeginCapture)                        \
  X(cuStreamEndCapture)                          \
  X(cuEventCreate)                               \
  X(cuEventDestroy)                              \
  X(cuEventRecord)                               \
  X(cuEventElapsedTime)                          \
  X(cuModuleLoadData)                            \
  X(cuModuleUnload)                              \
  X(cuModuleGetFunction)                         \
  X(cuFuncLoad)                                  \
  X(cuFuncGetParamInfo)                          \
  X(cuFuncGetAttribute)                          \
  X(cuFuncSetAttribute)                          \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuLaunchKernelEx)                            \
  X(cuGraphInstantiate)                          \
  X(cuGraphUpload)                               \
  X(cuGraphLaunch)                               \
  X(cuGraphDestroy)                              \
  X(cuGraphExecDestroy)

namespace afdep::cuda {

// Members have the names of the functions; the name is parenthesized in a call where cuda.h defines
// a macro of it.
struct Driver {
#define AFDEP_MEMBER(name) decltype(&::name) name = nullptr;
  AFDEP_CUDA_FUNCTIONS(AFDEP_MEMBER)
#undef AFDEP_MEMBER
  int version = 0;  // 13000 for CUDA 13.0
};

// The driver, opened and initialised by the first call. Fails with kToolchain, naming what was
// looked for and the remedy, if there is none or it is older than CUDA 13.0. Sets
// CUDA_MODULE_LOADING=EAGER and CUDA_DEVICE_MAX_CONNECTIONS=32 before cuInit unless the user set
// them: code that loads lazily could wait for a spinning peer, and so could streams that share a
// queue.
Result<const Driver*> open_driver();

// "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)", with the code that fits the error.
Failure failure(const Driver& driver, CUresult result, std::string_view call);

}  // namespace afdep::cuda

// Returns the failure of a driver call from the enclosing function.
#define AFDEP_CUDA(driver, name, ...)                                                   \
  do {                                                                                  \
    if (const CUresult result_ = (driver).name(__VA_ARGS__); result_ != CUDA_SUCCESS) { \
      return ::afdep::cuda::failure((driver), result_, #name);                          \
    }                                                                                   \
  } while (false)
