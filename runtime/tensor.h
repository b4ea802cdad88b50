// Tensors that callers pass in and get back: a view of memory that somebody else owns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace afdep {

enum class DType : std::uint8_t { kBf16, kFloat16, kFloat32, kInt32, kInt64, kUint8 };

std::string_view to_string(DType type);  // "bf16", "float16", "float32", "int32", "int64", "uint8"
std::int64_t bytes_of(DType type);       // of one element

// One or two dimensions. data may be null if there are no elements.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kBf16;
  int rank = 2;                     // dimensions in use
  std::int64_t shape[2] = {0, 0};   // a vector uses shape[0]
  std::int64_t stride[2] = {0, 1};  // elements

  [[nodiscard]] std::int64_t elements() const { return rank == 1 ? shape[0] : shape[0] * shape[1]; }
  [[nodiscard]] bool contiguous() const;
};

// Contiguous. Kernels only read the inputs of an operation, so a tensor of them may come from a
// const pointer.
Tensor matrix(const void* data, DType type, std::int64_t rows, std::int64_t columns);
Tensor vector(const void* data, DType type, std::int64_t elements);

// "bf16 [8, 2048]", with the strides if it is not contiguous.
std::string to_string(const Tensor& tensor);

}  // namespace afdep
