#include "generator/tune/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/unit/tune/sample.h"

namespace afdep::tune {
namespace {

using spec::Protocol;
using ::testing::ElementsAre;
using ::testing::SizeIs;

std::vector<BucketArms> arms() {
  const auto arm = [](int bucket, Protocol protocol) {
    return Arm{{{bucket, protocol, {24, 24}}}};
  };
  return {{1, {arm(1, Protocol::kFlagInData)}},
          {2048, {arm(2048, Protocol::kChunked), arm(2048, Protocol::kBulk)}}};
}

// Times by script, and remembers what it was asked.
class FakeTimer final : public Timer {
 public:
  std::map<std::string, double> us;
  std::map<std::string, ErrorCode> refuses;
  std::vector<std::string> opened;
  std::vector<std::string> timed;
  int closed = 0;

  Result<void> open(const Arm& arm, const spec::Spec& spec) override {
    EXPECT_THAT(spec.capacity.buckets.value, ElementsAre(arm.variants.front().bucket));
    if (const auto found = refuses.find(arm.name()); found != refuses.end()) {
      return Failure(found->second, "refused " + arm.name());
    }
    opened.push_back(arm.name());
    open_.insert(arm.name());
    return {};
  }
  Result<double> time(const Arm& arm) override {
    EXPECT_TRUE(open_.contains(arm.name()));
    timed.push_back(arm.name());
    return us[arm.name()];
  }
  void close_all() override {
    ++closed;
    open_.clear();
  }

 private:
  std::set<std::string> open_;
};

FakeTimer timer() {
  FakeTimer made;
  made.us = {{"1 flag_in_data 24+24", 5}, {"2048 chunked 24+24", 200}, {"2048 bulk 24+24", 130}};
  return made;
}

RunOptions repeats(int count) {
  RunOptions options;
  options.repeats = count;
  return options;
}

TEST(Run, ArmsOfABucketTakeTurns) {
  FakeTimer fake = timer();
  State state;
  const auto ended = run(sample_spec(), arms(), fake, state, repeats(2));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, Ending::kComplete);
  EXPECT_THAT(fake.timed,
              ElementsAre("1 flag_in_data 24+24", "1 flag_in_data 24+24", "2048 chunked 24+24",
                          "2048 bulk 24+24", "2048 chunked 24+24", "2048 bulk 24+24"));
  EXPECT_EQ(fake.closed, 2);
  EXPECT_THAT(state.samples["2048 bulk 24+24"], ElementsAre(130, 130));
}

TEST(Run, AnInterruptionKeepsWhatWasMeasured) {
  FakeTimer fake = timer();
  State state;
  State kept;
  RunOptions options = repeats(3);
  options.interrupted = [&] { return fake.timed.size() >= 5; };  // in the second bucket's round 1
  options.keep = [&](const State& now) {
    kept = now;
    return Result<void>();
  };
  const auto ended = run(sample_spec(), arms(), fake, state, options);
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, Ending::kInterrupted);
  EXPECT_EQ(kept, state);
  EXPECT_THAT(kept.samples["1 flag_in_data 24+24"], SizeIs(3));
  EXPECT_THAT(kept.samples["2048 chunked 24+24"], SizeIs(1));
  EXPECT_THAT(kept.samples["2048 bulk 24+24"], SizeIs(1));
  EXPECT_EQ(fake.closed, 2);  // nothing stays on the GPU
}

TEST(Run, AnotherRunGoesOnFromThere) {
  FakeTimer fake = timer();
  State state;
  state.samples = {{"1 flag_in_data 24+24", {5, 5, 5}},
                   {"2048 chunked 24+24", {200, 201, 202}},
                   {"2048 bulk 24+24", {130}}};
  const auto ended = run(sample_spec(), arms(), fake, state, repeats(3));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(*ended, Ending::kComplete);
  EXPECT_THAT(fake.opened, ElementsAre("2048 bulk 24+24"));
  EXPECT_THAT(fake.timed, ElementsAre("2048 bulk 24+24", "2048 bulk 24+24"));
  EXPECT_THAT(state.samples["2048 chunked 24+24"], ElementsAre(200, 201, 202));
}

TEST(Run, AnArmThatCannotRunHereIsLeftOut) {
  FakeTimer fake = timer();
  fake.refuses["2048 bulk 24+24"] = ErrorCode::kLaunch;
  State state;
  const auto ended = run(sample_spec(), arms(), fake, state, repeats(1));
  ASSERT_TRUE(ended.ok());
  EXPECT_EQ(state.refused["2048 bulk 24+24"], "refused 2048 bulk 24+24");
  EXPECT_FALSE(state.samples.contains("2048 bulk 24+24"));
  EXPECT_THAT(state.samples["2048 chunked 24+24"], SizeIs(1));
}

TEST(Run, WrongDataEndsTheTuningAndKeepsTheRest) {
  FakeTimer fake = timer();
  fake.refuses["2048 bulk 24+24"] = ErrorCode::kVerification;
  State state;
  State kept;
  RunOptions options = repeats(1);
  options.keep = [&](const State& now) {
    kept = now;
    return Result<void>();
  };
  const auto ended = run(sample_spec(), arms(), fake, state, options);
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.diagnostics()[0].code, ErrorCode::kVerification);
  EXPECT_THAT(kept.samples["1 flag_in_data 24+24"], SizeIs(1));
}

TEST(Run, ProgressEndsAtItsTotal) {
  FakeTimer fake = timer();
  State state;
  int last = 0;
  int total = 0;
  RunOptions options = repeats(4);
  options.on_progress = [&](int done, int all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    total = all;
  };
  std::vector<int> buckets;
  options.on_bucket = [&](int bucket) { buckets.push_back(bucket); };
  ASSERT_TRUE(run(sample_spec(), arms(), fake, state, options).ok());
  EXPECT_EQ(total, 3 * 5);
  EXPECT_EQ(last, total);
  EXPECT_THAT(buckets, ElementsAre(1, 2048));
}

}  // namespace
}  // namespace afdep::tune
