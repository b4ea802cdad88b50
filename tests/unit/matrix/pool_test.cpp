#include "generator/matrix/pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <stdexcept>
#include <thread>

namespace afdep::matrix {
namespace {

using ::testing::HasSubstr;

struct Ran {
  std::map<int, JobEnd> ends;
  bool finished = false;
};

Ran run(int count, const PoolOptions& options,
        const std::function<std::string(int, const TellStage&)>& body) {
  Ran ran;
  ran.finished =
      run_pool(count, options, body, [&ran](int i, JobEnd end) { ran.ends[i] = std::move(end); });
  return ran;
}

[[noreturn]] void sleep_forever() {
  while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
}

TEST(Pool, ReturnsWhatEachBodyReturned) {
  const Ran ran = run(20, {.jobs = 3, .limit_seconds = 60}, [](int i, const TellStage&) {
    return std::string(static_cast<std::size_t>(i) * 10'000, 'x') + std::to_string(i);
  });
  EXPECT_TRUE(ran.finished);
  ASSERT_EQ(ran.ends.size(), 20U);
  for (const auto& [i, end] : ran.ends) {
    EXPECT_EQ(end.how, Ended::kReturned);
    EXPECT_EQ(end.result.size(), static_cast<std::size_t>(i) * 10'000 + std::to_string(i).size());
    EXPECT_TRUE(end.result.ends_with(std::to_string(i)));
  }
}

// A sleeping job takes time, but none of the machine's; one that works takes both.
TEST(Pool, TellsTheTimeOfTheClockAndOfTheMachine) {
  constexpr double kLeast = 0.2;
  const Ran ran = run(2, {.jobs = 1, .limit_seconds = 60}, [](int i, const TellStage&) {
    const std::clock_t start = std::clock();
    if (i == 0) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    while (i == 1 && std::clock() - start < CLOCKS_PER_SEC / 5) {
    }
    return std::string();
  });
  EXPECT_GE(ran.ends.at(0).seconds, kLeast);
  EXPECT_LT(ran.ends.at(0).cpu_seconds, kLeast / 2);
  EXPECT_GE(ran.ends.at(1).cpu_seconds, kLeast * 0.95);
  EXPECT_GE(ran.ends.at(1).seconds, kLeast * 0.95);
}

TEST(Pool, ACrashTakesNoOtherJobWithIt) {
  const Ran ran = run(3, {.jobs = 2, .limit_seconds = 60}, [](int i, const TellStage& tell) {
    tell("first");
    tell("second");
    if (i == 1) {
      std::fputs("last words\n", stderr);
      std::raise(SIGKILL);
    }
    return std::string("fine");
  });
  EXPECT_TRUE(ran.finished);
  EXPECT_EQ(ran.ends.at(0).result, "fine");
  EXPECT_EQ(ran.ends.at(2).result, "fine");
  EXPECT_EQ(ran.ends.at(1).how, Ended::kSignal);
  EXPECT_EQ(ran.ends.at(1).number, SIGKILL);
  EXPECT_EQ(ran.ends.at(1).stage, "second");
  EXPECT_EQ(ran.ends.at(1).output, "last words\n");
}

TEST(Pool, AnExceptionIsAnInternalError) {
  const Ran ran = run(1, {}, [](int, const TellStage&) -> std::string {
    throw std::runtime_error("the invariant");
  });
  EXPECT_EQ(ran.ends.at(0).how, Ended::kExit);
  EXPECT_EQ(ran.ends.at(0).number, 70);
  EXPECT_THAT(ran.ends.at(0).output, HasSubstr("the invariant"));
}

TEST(Pool, StopsAJobAtItsLimit) {
  const auto start = std::chrono::steady_clock::now();
  const Ran ran = run(2, {.jobs = 2, .limit_seconds = 0.3}, [](int i, const TellStage& tell) {
    tell("dreaming");
    if (i == 0) sleep_forever();
    return std::string("fine");
  });
  EXPECT_TRUE(ran.finished);
  EXPECT_EQ(ran.ends.at(0).how, Ended::kTimeout);
  EXPECT_EQ(ran.ends.at(0).stage, "dreaming");
  EXPECT_EQ(ran.ends.at(1).result, "fine");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Pool, AnInterruptKeepsWhatHasEnded) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::map<int, JobEnd> ends;
    const bool finished = run_pool(
        50, {.jobs = 2, .limit_seconds = 60},
        [](int i, const TellStage&) {
          if (i >= 3) sleep_forever();
          return std::string("fine");
        },
        [&](int i, JobEnd end) {
          ends[i] = std::move(end);
          if (ends.size() == 3) kill(getpid(), signal);
        });
    EXPECT_FALSE(finished);
    EXPECT_EQ(ends.size(), 3U);
  }
}

TEST(Pool, RunsNothingForNoJobs) {
  EXPECT_TRUE(run(0, {}, [](int, const TellStage&) { return std::string(); }).finished);
}

}  // namespace
}  // namespace afdep::matrix
