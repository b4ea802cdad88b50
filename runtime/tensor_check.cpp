#include "runtime/tensor_check.h"

#include <fmt/format.h>

namespace afdep {
namespace {

Tensor ideal(const Expected& expected) {
  return expected.rank == 1 ? vector(nullptr, expected.dtype, expected.rows)
                            : matrix(nullptr, expected.dtype, expected.rows, expected.columns);
}

Failure refused(const Tensor& tensor, const Expected& expected, std::string_view what) {
  return {
      expected.code,
      fmt::format("{}: {} is {}; {}", expected.call, expected.argument, to_string(tensor), what),
      fmt::format("pass {} as contiguous {}", expected.argument, to_string(ideal(expected)))};
}

}  // namespace

Result<void> check(const Tensor& tensor, const Expected& expected, const Backend& backend) {
  if (tensor.dtype != expected.dtype) {
    return refused(tensor, expected,
                   fmt::format("the dtype must be {}", to_string(expected.dtype)));
  }
  // The caller takes the number of rows from one tensor and expects it of the others.
  if (tensor.shape[0] < 0) return refused(tensor, expected, "a shape is not negative");
  const bool same_shape = tensor.rank == expected.rank && tensor.shape[0] == expected.rows &&
                          (expected.rank == 1 || tensor.shape[1] == expected.columns);
  if (!same_shape) {
    return refused(tensor, expected,
                   fmt::format("this exchange needs {}", to_string(ideal(expected))));
  }
  if (tensor.elements() == 0) return {};
  if (!tensor.contiguous()) return refused(tensor, expected, "it must be contiguous");
  if (!backend.owns(tensor.data)) {
    return refused(tensor, expected,
                   fmt::format("address {} is not memory of {}", fmt::ptr(tensor.data),
                               backend.device_name()));
  }
  if (reinterpret_cast<std::uintptr_t>(tensor.data) % static_cast<unsigned>(expected.alignment) !=
      0) {
    return refused(tensor, expected,
                   fmt::format("address {} is not aligned to {} bytes", fmt::ptr(tensor.data),
                               expected.alignment));
  }
  return {};
}

}  // namespace afdep
