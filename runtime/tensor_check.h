// What each operation demands of its tensors.
#pragma once

#include <string_view>

#include "runtime/backend/backend.h"
#include "runtime/support/result.h"
#include "runtime/tensor.h"

namespace afdep {

struct Expected {
  std::string_view call;      // "source_dispatch"
  std::string_view argument;  // "x"
  ErrorCode code = ErrorCode::kPayloadTensor;
  DType dtype = DType::kBf16;
  int rank = 2;
  std::int64_t rows = 0;     // shape[0]
  std::int64_t columns = 0;  // shape[1] of a matrix
  int alignment = 16;        // bytes, of data
};

// Dtype, shape, contiguity, device and alignment, in this order; what was given and what is needed
// go into the message. Formats text only if it fails. A tensor without elements may have any data.
Result<void> check(const Tensor& tensor, const Expected& expected, const Backend& backend);

}  // namespace afdep
