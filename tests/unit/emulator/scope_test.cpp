// The memory model's scopes by themselves: which atomic accesses are so for each other.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/emulator/choices.h"
#include "runtime/emulator/device_memory.h"
#include "runtime/emulator/memory_model.h"

namespace afdep::emulator {
namespace {

// Two blocks of rank 0 and one of rank 1, of 32 threads each; all of them run.
class Scopes : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int launch = 1; launch <= 2; ++launch) {
      KernelStart start;
      start.rank = launch - 1;
      start.launch = static_cast<std::uint64_t>(launch);
      start.stream = start.launch;
      start.symbol = std::make_shared<const std::string>("k");
      model_->kernel_started(start);
    }
    for (int i = 0; i < 3; ++i) {
      const std::uint64_t launch = i < 2 ? 1 : 2;
      first_[i] = model_->block_started({launch, i % 2, 32, nullptr, 0});
      threads_[i] = {i / 2, launch, i % 2, 0, first_[i]};
      others_[i] = {i / 2, launch, i % 2, 1, first_[i] + 1};
    }
  }

  // Stores data, releases a flag; another thread acquires it and loads the data.
  std::string pass(const ThreadId& from, Scope from_scope, const ThreadId& to, Scope to_scope) {
    std::uint32_t value = 1;
    model_->store({from, Scope::kThread, &data_, 4, 0}, &value);
    model_->release({from, from_scope, &flag_, 4, 0}, &value);
    // A load may pass over the newest store, but not forever.
    for (std::uint32_t seen = 0; seen != 1 && !model_->violated();) {
      model_->acquire({to, to_scope, &flag_, 4, 0}, &seen);
    }
    if (!model_->violated()) model_->load({to, Scope::kThread, &data_, 4, 0}, &value);
    const std::string text = model_->violation();
    return text.substr(0, text.find(" at "));
  }

  alignas(16) std::uint32_t data_ = 0;
  alignas(16) std::uint32_t flag_ = 0;
  Choices choices_{1};
  DeviceMemory memory_;
  std::unique_ptr<MemoryModel> model_ = make_weak_memory(choices_, memory_);
  std::uint32_t first_[3]{};
  ThreadId threads_[3]{};  // of each block
  ThreadId others_[3]{};
};

constexpr const char* kNarrow = "data race: scope too narrow";

TEST_F(Scopes, BlockScopeOrdersThreadsOfOneBlock) {
  EXPECT_EQ(pass(threads_[0], Scope::kBlock, others_[0], Scope::kBlock), "");
}
TEST_F(Scopes, BlockScopeOrdersNoBlocksOfOneRank) {
  EXPECT_EQ(pass(threads_[0], Scope::kBlock, threads_[1], Scope::kBlock), kNarrow);
}
TEST_F(Scopes, BlockScopeOnOneSideIsNotEnough) {
  EXPECT_EQ(pass(threads_[0], Scope::kGpu, threads_[1], Scope::kBlock), kNarrow);
}
TEST_F(Scopes, BlockScopeOnTheOtherSideIsNotEnough) {
  EXPECT_EQ(pass(threads_[0], Scope::kBlock, threads_[1], Scope::kSystem), kNarrow);
}
TEST_F(Scopes, GpuScopeOrdersBlocksOfOneRank) {
  EXPECT_EQ(pass(threads_[0], Scope::kGpu, threads_[1], Scope::kGpu), "");
}
TEST_F(Scopes, AWiderScopeReachesANarrowerOneOfTheSameRank) {
  EXPECT_EQ(pass(threads_[0], Scope::kSystem, threads_[1], Scope::kGpu), "");
}
TEST_F(Scopes, GpuScopeOrdersNoRanks) {
  EXPECT_EQ(pass(threads_[0], Scope::kGpu, threads_[2], Scope::kGpu), kNarrow);
}
TEST_F(Scopes, SystemScopeOrdersRanks) {
  EXPECT_EQ(pass(threads_[0], Scope::kSystem, threads_[2], Scope::kSystem), "");
}

// The race is there in whichever order the two accesses come.
TEST_F(Scopes, ALoadBeforeTheStoreIsARaceToo) {
  std::uint32_t value = 0;
  model_->acquire({threads_[0], Scope::kSystem, &flag_, 4, 0}, &value);
  model_->acquire({threads_[2], Scope::kGpu, &flag_, 4, 0}, &value);
  EXPECT_FALSE(model_->violated());
  model_->release({threads_[0], Scope::kSystem, &flag_, 4, 0}, &value);
  EXPECT_EQ(
      model_->violation(),
      "data race: scope too narrow at " + memory_.describe_address(&flag_) +
          "\n  first: atomic load of GPU scope by rank 1 k (launch 2) block 0 thread 0, at an "
          "unknown place\n  then: atomic store of system scope of 4 bytes by rank 0 k (launch "
          "1) block 0 thread 0, at an unknown place\n  missing: a scope must reach the other "
          "thread: threads of one rank have GPU scope in common, ranks only system scope; and "
          "no causality orders the two");
}

// Two blocks of one kernel store the same word; what is reported of it.
class BlocksThatRace : public Scopes {
 protected:
  std::string race() {
    std::uint32_t value = 1;
    for (const int block : {0, 1}) {
      model_->store({threads_[block], Scope::kThread, &data_, 4, 0}, &value);
    }
    const std::string text = model_->violation();
    return text.substr(0, text.find(" at "));
  }
};

TEST_F(BlocksThatRace, AreFoundAlthoughARelaxedWordOfTheGpuIsSet) {
  std::uint32_t value = 7;
  model_->store_relaxed({threads_[0], Scope::kGpu, &flag_, 4, 0}, &value);
  for (std::uint32_t seen = 0; seen != 7;) {
    model_->load_relaxed({threads_[1], Scope::kGpu, &flag_, 4, 0}, &seen);
  }
  EXPECT_EQ(race(), "data race");
}
// What they write is not defined then.
TEST_F(BlocksThatRace, AreLeftAloneAfterAWaitOfTheirRankGaveUp) {
  model_->wait_expired(0);
  EXPECT_EQ(race(), "");
}
TEST_F(BlocksThatRace, AreFoundAfterAWaitOfAnotherRankGaveUp) {
  model_->wait_expired(1);
  EXPECT_EQ(race(), "data race");
}

// A relaxed load and an ordinary store: a race whatever the scope, in either order.
TEST_F(Scopes, AnOrdinaryStoreAfterARelaxedLoadIsARace) {
  std::uint32_t value = 0;
  model_->load_relaxed({threads_[0], Scope::kGpu, &flag_, 4, 0}, &value);
  model_->store({threads_[1], Scope::kThread, &flag_, 4, 0}, &value);
  EXPECT_NE(model_->violation().find("first: atomic load"), std::string::npos)
      << model_->violation();
}
TEST_F(Scopes, AnOrdinaryStoreMayFollowTheRelaxedLoadOfItsThread) {
  std::uint32_t value = 0;
  model_->load_relaxed({threads_[0], Scope::kGpu, &flag_, 4, 0}, &value);
  model_->store({threads_[0], Scope::kThread, &flag_, 4, 0}, &value);
  EXPECT_FALSE(model_->violated()) << model_->violation();
}

}  // namespace
}  // namespace afdep::emulator
