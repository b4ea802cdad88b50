#include "runtime/transport/loopback.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/unit/exchange/fake_backend.h"

namespace afdep {
namespace {

TEST(Loopback, EveryRankSeesTheSameZeroedWindows) {
  FakeBackend backend;
  auto ranks = make_loopback(backend, 3);
  const Field fields[] = {{"digest", "a"}};
  std::vector<Window> windows;
  for (const auto& rank : ranks) windows.push_back(*rank->register_window(512, fields));
  for (const Window& window : windows) EXPECT_EQ(window.address, windows[0].address);
  EXPECT_EQ(windows[0].address.size(), 3U);
  EXPECT_EQ(windows[0].address[2][511], 0);
  EXPECT_EQ(ranks[1]->rank(), 1);
  EXPECT_EQ(ranks[1]->ranks_on_device(), 3);
  for (const auto& rank : ranks) EXPECT_TRUE(rank->ready(windows[0]).ok());
  for (const auto& rank : ranks) rank->release_window(windows[0]);
  EXPECT_TRUE(backend.blocks.empty());
}

TEST(Loopback, RegistrationsPairByTheirOrder) {
  FakeBackend backend;
  auto ranks = make_loopback(backend, 2);
  const Window a0 = *ranks[0]->register_window(256, {});
  const Window b0 = *ranks[0]->register_window(1024, {});
  const Window a1 = *ranks[1]->register_window(256, {});
  EXPECT_EQ(a0.address, a1.address);
  EXPECT_FALSE(ranks[0]->ready(b0).ok());
  const Window b1 = *ranks[1]->register_window(1024, {});
  EXPECT_EQ(b0.address, b1.address);
  EXPECT_TRUE(ranks[0]->ready(b0).ok());
}

TEST(Loopback, ADisagreementReachesEveryRankByName) {
  FakeBackend backend;
  auto ranks = make_loopback(backend, 3);
  const Field first[] = {{"spec digest", "aa"}, {"NVRTC version", "13.0"}};
  const Field other[] = {{"spec digest", "aa"}, {"NVRTC version", "13.1"}};
  const Window window = *ranks[0]->register_window(256, first);
  constexpr const char* kMessage = "rank 1 has NVRTC version = 13.1, rank 0 has 13.0";
  const Result<Window> second = ranks[1]->register_window(256, other);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.diagnostics().front().code, ErrorCode::kRanksDisagree);
  EXPECT_EQ(second.diagnostics().front().message, kMessage);
  // The third agrees with the first, but there is no group.
  EXPECT_EQ(ranks[2]->register_window(256, first).diagnostics().front().message, kMessage);
  EXPECT_EQ(ranks[0]->ready(window).diagnostics().front().message, kMessage);
  ranks[0]->release_window(window);
  EXPECT_TRUE(backend.blocks.empty());
  // The next registration is a new start.
  for (const auto& rank : ranks) EXPECT_TRUE(rank->register_window(256, first).ok());
}

TEST(Loopback, SizesMustAgree) {
  FakeBackend backend;
  auto ranks = make_loopback(backend, 2);
  ASSERT_TRUE(ranks[0]->register_window(256, {}).ok());
  EXPECT_EQ(ranks[1]->register_window(512, {}).diagnostics().front().message,
            "rank 1 has window bytes = 512, rank 0 has 256");
}

TEST(Loopback, OutOfMemoryIsEveryRanksFailure) {
  FakeBackend backend;
  backend.allocations_left = 1;
  auto ranks = make_loopback(backend, 2);
  EXPECT_EQ(ranks[0]->register_window(256, {}).diagnostics().front().code, ErrorCode::kMemory);
  EXPECT_EQ(ranks[1]->register_window(256, {}).diagnostics().front().code, ErrorCode::kMemory);
  EXPECT_TRUE(backend.blocks.empty());
}

TEST(Loopback, RanksMayLiveOnThreads) {
  FakeBackend backend;
  auto ranks = make_loopback(backend, 8);
  std::vector<Window> windows(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] { windows[i] = *ranks[i]->register_window(256, {}); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Window& window : windows) EXPECT_EQ(window.address, windows[0].address);
}

}  // namespace
}  // namespace afdep
