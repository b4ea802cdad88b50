#include "runtime/cuda/cuda_backend.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

namespace afdep {
namespace {

using ::testing::HasSubstr;

class CudaBackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<std::unique_ptr<Backend>> made = make_cuda_backend();
    if (!made.ok()) GTEST_SKIP() << to_string(made.diagnostics());
    backend_ = std::move(*made);
  }
  std::unique_ptr<Backend> backend_;
};

TEST(CudaDriver, IsNamedWhereItIsMissing) {
  if (void* library = ::dlopen("libcuda.so.1", RTLD_LAZY); library != nullptr) {
    ::dlclose(library);
    GTEST_SKIP() << "this machine has a CUDA driver";
  }
  const auto made = make_cuda_backend();
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.diagnostics().front().code, ErrorCode::kToolchain);
  EXPECT_THAT(made.diagnostics().front().message,
              HasSubstr("no CUDA driver: looked for libcuda.so.1"));
  EXPECT_THAT(made.diagnostics().front().note, HasSubstr("install NVIDIA driver 580 or newer"));
}

TEST_F(CudaBackendTest, NamesADeviceThatIsNotThere) {
  const auto made = make_cuda_backend(99);
  ASSERT_FALSE(made.ok());
  EXPECT_THAT(made.diagnostics().front().message, HasSubstr("no CUDA device 99"));
}

TEST_F(CudaBackendTest, LoadsModulesEagerlyUnlessTheUserSaysOtherwise) {
  EXPECT_STREQ(std::getenv("CUDA_MODULE_LOADING"), "EAGER");
  EXPECT_STREQ(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"), "32");
}

TEST_F(CudaBackendTest, MemoryIsZeroedAlignedAndOwned) {
  void* const memory = *backend_->allocate(1000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0U);
  std::vector<std::uint8_t> bytes(1000, 1);
  ASSERT_TRUE(backend_->copy_to_host(bytes.data(), memory, bytes.size()).ok());
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(1000, 0));
  EXPECT_TRUE(backend_->owns(memory));
  EXPECT_TRUE(backend_->owns(static_cast<std::byte*>(memory) + 999));
  EXPECT_FALSE(backend_->owns(bytes.data()));
  ASSERT_TRUE(backend_->fill(memory, 0xab, 1000).ok());
  ASSERT_TRUE(backend_->copy_to_host(bytes.data(), memory, bytes.size()).ok());
  EXPECT_EQ(bytes, std::vector<std::uint8_t>(1000, 0xab));
  backend_->free(memory);
}

TEST_F(CudaBackendTest, HostMappedMemoryIsNotTheDevices) {
  const Backend::HostMapped memory = *backend_->allocate_host_mapped(64);
  EXPECT_EQ(static_cast<std::uint8_t*>(memory.host)[63], 0);
  EXPECT_FALSE(backend_->owns(memory.host));
  backend_->free_host_mapped(memory);
}

TEST_F(CudaBackendTest, OutOfMemorySaysHowMuchIsFree) {
  const Result<void*> memory = backend_->allocate(std::size_t{1} << 46);
  ASSERT_FALSE(memory.ok());
  EXPECT_EQ(memory.diagnostics().front().code, ErrorCode::kMemory);
  EXPECT_THAT(
      memory.diagnostics().front().message,
      HasSubstr("CUDA_ERROR_OUT_OF_MEMORY (out of memory): asked for 70368744177664 bytes"));
}

TEST_F(CudaBackendTest, CopiesAreCapturedAndReplayed) {
  const Stream stream = *backend_->create_stream();
  auto* const memory = static_cast<std::byte*>(*backend_->allocate(512));
  EXPECT_FALSE(backend_->is_capturing(stream));
  ASSERT_TRUE(backend_->begin_capture(stream).ok());
  EXPECT_TRUE(backend_->is_capturing(stream));
  ASSERT_TRUE(backend_->copy_on_stream(memory, memory + 256, 256, stream).ok());
  const Graph graph = *backend_->end_capture(stream);
  ASSERT_TRUE(backend_->fill(memory + 256, 7, 256).ok());
  ASSERT_TRUE(backend_->replay(graph, stream).ok());
  ASSERT_TRUE(backend_->synchronize(stream).ok());
  std::uint8_t byte = 0;
  ASSERT_TRUE(backend_->copy_to_host(&byte, memory + 255, 1).ok());
  EXPECT_EQ(byte, 7);
  backend_->destroy_graph(graph);
  backend_->free(memory);
  backend_->destroy_stream(stream);
}

TEST_F(CudaBackendTest, AllocationInsideACaptureIsRefusedByCode) {
  const Stream stream = *backend_->create_stream();
  ASSERT_TRUE(backend_->begin_capture(stream).ok());
  const Result<void*> memory = backend_->allocate(256);
  if (memory.ok()) {
    backend_->free(*memory);
  } else {
    EXPECT_EQ(memory.diagnostics().front().code, ErrorCode::kInCapture);
  }
  const Result<Graph> graph = backend_->end_capture(stream);
  if (graph.ok()) backend_->destroy_graph(*graph);
  backend_->destroy_stream(stream);
}

TEST_F(CudaBackendTest, ADamagedCubinIsRefusedByTheKernelsName) {
  const std::vector<std::byte> image(64, std::byte{1});
  const Result<const LoadedKernel*> loaded =
      backend_->load({.symbol = "kernel", .source_name = "k.cu", .source = "", .image = image});
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.diagnostics().front().message,
              HasSubstr("cuModuleLoadData failed: CUDA_ERROR_"));
  EXPECT_THAT(loaded.diagnostics().front().message, HasSubstr("for kernel kernel"));
}

TEST_F(CudaBackendTest, DescribesTheDevice) {
  EXPECT_TRUE(backend_->arch().starts_with("sm_"));
  EXPECT_GT(backend_->sm_count(), 0);
  ASSERT_TRUE(backend_->sm_limits().has_value());
  EXPECT_GE(backend_->sm_limits()->threads, 1024);
}

}  // namespace
}  // namespace afdep
