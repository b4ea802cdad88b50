#include "generator/tune/state.h"

#include <gtest/gtest.h>

namespace afdep::tune {
namespace {

Identity identity() { return {"abc", "0.1.0", "NVIDIA H200", "580.159", "random routing"}; }

TEST(TuneState, ComesBackAsItWas) {
  const State state{.identity = identity(),
                    .samples = {{"1 bulk 24+24", {5.25, 5.5}}},
                    .refused = {{"1 chunked 24+24", "too \"large\""}}};
  const Result<State> read = read_state(to_text(state), "t.state", identity());
  ASSERT_TRUE(read.ok()) << to_string(read.diagnostics());
  EXPECT_EQ(*read, state);
}

TEST(TuneState, OfAnotherGpuIsRefusedWithBothNames) {
  const State state{.identity = identity(), .samples = {}, .refused = {}};
  Identity here = identity();
  here.gpu = "NVIDIA H100";
  const Result<State> read = read_state(to_text(state), "t.state", here);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.diagnostics()[0].code, ErrorCode::kDirectory);
  EXPECT_EQ(read.diagnostics()[0].message,
            "t.state holds measurements of another run: GPU is NVIDIA H200, here NVIDIA H100");
}

TEST(TuneState, DamagedTextIsRefused) {
  const State state{.identity = identity(), .samples = {{"a", {1.0}}}, .refused = {}};
  const std::string text = to_text(state);
  for (const std::string& damaged :
       {std::string(), text.substr(0, text.size() / 2), std::string("[]"),
        std::string("{\"format\": 1}"), std::string("{\"format\": \"x\"}"),
        std::string("{\"format\": 2}")}) {
    const Result<State> read = read_state(damaged, "t.state", identity());
    ASSERT_FALSE(read.ok()) << damaged;
    EXPECT_TRUE(read.diagnostics()[0].message.starts_with("t.state is not the state of a tuner"));
  }
}

}  // namespace
}  // namespace afdep::tune
