// What dispatch and collect say of tensors that do not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/exchange/buffer_fixture.h"

namespace afdep {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class BufferTensorTest : public BufferTest {
 protected:
  void SetUp() override {
    create();
    x_ = payload(2);
    ids_ = ids(2);
    weights_ = weights(2);
  }
  std::string dispatched() {
    return message_of(
        source().source_dispatch(x_, ids_, weights_, {.bucket = 2, .stream = kStream}));
  }
  Tensor x_;
  Tensor ids_;
  Tensor weights_;
};

TEST_F(BufferTensorTest, WrongDtypes) {
  x_.dtype = DType::kFloat16;
  EXPECT_THAT(dispatched(),
              HasSubstr("error[E301]: source_dispatch: x is float16 [2, 64]; the dtype must be "
                        "bf16\n  note: pass x as contiguous bf16 [2, 64]"));
  x_.dtype = DType::kBf16;
  ids_.dtype = DType::kInt32;
  EXPECT_THAT(dispatched(),
              HasSubstr("error[E302]: source_dispatch: ids is int32 [2, 2]; the dtype must be "
                        "int64"));
  ids_.dtype = DType::kInt64;
  weights_.dtype = DType::kBf16;
  EXPECT_THAT(dispatched(),
              HasSubstr("error[E302]: source_dispatch: weights is bf16 [2, 2]; the dtype must be "
                        "float32"));
  EXPECT_THAT(backend_.launches, IsEmpty());
}

TEST_F(BufferTensorTest, WrongShapes) {
  x_.shape[1] = 63;
  EXPECT_THAT(dispatched(), HasSubstr("error[E301]: source_dispatch: x is bf16 [2, 63]"));
  x_ = payload(2);
  ids_ = ids(1);
  EXPECT_THAT(dispatched(),
              HasSubstr("error[E302]: source_dispatch: ids is int64 [1, 2]; this exchange needs "
                        "int64 [2, 2]"));
  ids_ = vector(ids_.data, DType::kInt64, 2);
  EXPECT_THAT(dispatched(), HasSubstr("error[E302]: source_dispatch: ids is int64 [2]; "));
}

TEST_F(BufferTensorTest, StridesMustBeContiguous) {
  x_.stride[0] = 128;
  EXPECT_THAT(dispatched(),
              HasSubstr("error[E301]: source_dispatch: x is bf16 [2, 64] with strides [128, 1]; it "
                        "must be contiguous"));
  // The stride of a single row is not used.
  x_.shape[0] = 1;
  ids_ = ids(1);
  weights_ = weights(1);
  EXPECT_EQ(dispatched(), "no failure");
}

TEST_F(BufferTensorTest, MemoryMustBeTheDevices) {
  alignas(16) std::uint16_t host[2 * kHidden] = {};
  x_.data = host;
  EXPECT_THAT(dispatched(), HasSubstr("is not memory of a fake GPU"));
}

TEST_F(BufferTensorTest, PayloadMustBeAligned) {
  x_.data = static_cast<std::byte*>(device_memory(4096)) + 8;
  EXPECT_THAT(dispatched(), HasSubstr("is not aligned to 16 bytes"));
}

TEST_F(BufferTensorTest, NoTokensNeedNoMemory) {
  x_ = matrix(nullptr, DType::kBf16, 0, kHidden);
  ids_ = matrix(nullptr, DType::kInt64, 0, kTopK);
  weights_ = matrix(nullptr, DType::kFloat32, 0, kTopK);
  EXPECT_EQ(dispatched(), "no failure");
  EXPECT_EQ(backend_.launches[0].as<DispatchArgs>().tokens, 0U);
  EXPECT_TRUE(source().source_collect({.out = x_, .stream = kStream}).ok());
}

TEST_F(BufferTensorTest, CollectTakesEitherOutOrView) {
  ASSERT_EQ(dispatched(), "no failure");
  EXPECT_THAT(message_of(source().source_collect({.stream = kStream})),
              HasSubstr("error[E301]: source_collect: neither out nor view is given"));
  EXPECT_THAT(
      message_of(source().source_collect({.out = payload(2), .view = true, .stream = kStream})),
      HasSubstr("error[E301]: source_collect: both out and view are given"));
  EXPECT_THAT(
      message_of(collect(1)),
      HasSubstr("error[E301]: source_collect: out is bf16 [1, 64]; this exchange needs bf16 "
                "[2, 64]"));
}

}  // namespace
}  // namespace afdep
