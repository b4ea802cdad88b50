// One GPU as a Backend, by the CUDA driver API. No CUDA header is needed to use it.
#pragma once

#include <memory>

#include "runtime/backend/backend.h"

namespace afdep {

// Uses the device's primary context, as PyTorch and the CUDA runtime do, and makes it current in
// whatever thread calls. Methods may be called from any thread. Fails with kToolchain where there
// is no driver of CUDA 13.0 or newer, or no such device.
Result<std::unique_ptr<Backend>> make_cuda_backend(int device = 0);

}  // namespace afdep
