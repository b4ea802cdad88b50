#include "runtime/tensor.h"

#include <fmt/format.h>

#include "runtime/support/check.h"

namespace afdep {

std::string_view to_string(DType type) {
  switch (type) {
    case DType::kBf16:
      return "bf16";
    case DType::kFloat16:
      return "float16";
    case DType::kFloat32:
      return "float32";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
  }
  fail_check("unknown dtype", std::source_location::current());
}

std::int64_t bytes_of(DType type) {
  switch (type) {
    case DType::kUint8:
      return 1;
    case DType::kBf16:
    case DType::kFloat16:
      return 2;
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kInt64:
      return 8;
  }
  fail_check("unknown dtype", std::source_location::current());
}

bool Tensor::contiguous() const {
  if (rank == 1) return shape[0] <= 1 || stride[0] == 1;
  return (shape[1] <= 1 || stride[1] == 1) && (shape[0] <= 1 || stride[0] == shape[1]);
}

Tensor matrix(const void* data, DType type, std::int64_t rows, std::int64_t columns) {
  return {.data = const_cast<void*>(data),
          .dtype = type,
          .rank = 2,
          .shape = {rows, columns},
          .stride = {columns, 1}};
}

Tensor vector(const void* data, DType type, std::int64_t elements) {
  return {.data = const_cast<void*>(data),
          .dtype = type,
          .rank = 1,
          .shape = {elements, 1},
          .stride = {1, 1}};
}

std::string to_string(const Tensor& tensor) {
  std::string text =
      tensor.rank == 1
          ? fmt::format("{} [{}]", to_string(tensor.dtype), tensor.shape[0])
          : fmt::format("{} [{}, {}]", to_string(tensor.dtype), tensor.shape[0], tensor.shape[1]);
  if (tensor.contiguous()) return text;
  return tensor.rank == 1
             ? fmt::format("{} with stride {}", text, tensor.stride[0])
             : fmt::format("{} with strides [{}, {}]", text, tensor.stride[0], tensor.stride[1]);
}

}  // namespace afdep
