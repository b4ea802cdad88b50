#include "runtime/tensor.h"

#include <gtest/gtest.h>

namespace afdep {
namespace {

TEST(Tensor, DescribesItself) {
  EXPECT_EQ(to_string(matrix(nullptr, DType::kBf16, 8, 2048)), "bf16 [8, 2048]");
  EXPECT_EQ(to_string(vector(nullptr, DType::kInt32, 64)), "int32 [64]");
  Tensor strided = matrix(nullptr, DType::kUint8, 2, 4);
  strided.stride[1] = 2;
  EXPECT_EQ(to_string(strided), "uint8 [2, 4] with strides [4, 2]");
}

TEST(Tensor, ContiguityIgnoresStridesThatAreNotUsed) {
  Tensor tensor = matrix(nullptr, DType::kBf16, 1, 4);
  tensor.stride[0] = 100;
  EXPECT_TRUE(tensor.contiguous());
  tensor.shape[0] = 2;
  EXPECT_FALSE(tensor.contiguous());
  Tensor column = matrix(nullptr, DType::kInt64, 3, 1);
  column.stride[1] = 7;
  EXPECT_TRUE(column.contiguous());
}

TEST(Tensor, ElementsHaveTheirSize) {
  EXPECT_EQ(bytes_of(DType::kBf16), 2);
  EXPECT_EQ(bytes_of(DType::kFloat16), 2);
  EXPECT_EQ(bytes_of(DType::kFloat32), 4);
  EXPECT_EQ(bytes_of(DType::kInt32), 4);
  EXPECT_EQ(bytes_of(DType::kInt64), 8);
  EXPECT_EQ(bytes_of(DType::kUint8), 1);
}

}  // namespace
}  // namespace afdep
