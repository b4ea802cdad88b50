// What an exchange sends, counted by hand.
#include "generator/verify/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generator/generate.h"
#include "generator/spec/reader.h"

namespace afdep::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// 128-byte rows; experts 0 to 3 on worker 0, 4 to 7 on worker 1. FFN ranks are world ranks 0 and 1.
plan::ExchangePlan plan_of(const char* protocol, const char* ablation = "") {
  const std::string text = std::string(R"(schema_version: 1
name: counted
model: {hidden_size: 64, num_experts: 8, top_k: 2}
topology: {ratio: "1A2F"}
capacity: {tokens_per_rank: 4, buckets: [4]}
kernel: {protocol: )") + protocol +
                           "}\nablation: {" + ablation + "}\n";
  const Result<spec::Spec> spec = spec::parse(text, "counted.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  Result<plan::ExchangePlan> plan = plan_exchange(*spec);
  if (!plan.ok()) throw std::runtime_error(to_string(plan.diagnostics()));
  return std::move(*plan);
}

// Token 0 to both workers, token 1 twice to worker 0, token 2 to nobody.
ExchangeCase three_tokens() {
  ExchangeCase exchange;
  exchange.bucket = 4;
  exchange.inputs.push_back({.tokens = 3, .x = {}, .ids = {0, 4, 1, 2, -1, -1}, .weights = {}});
  exchange.received.resize(2);
  exchange.received[0].rows = {{0, 0, 0, 0}, {1, 0, 1, 0}, {2, 0, 1, 1}};
  exchange.received[1].rows = {{0, 0, 0, 1}};
  return exchange;
}

TEST(Prediction, Packets) {
  const ExchangeTraffic traffic = predict(plan_of("flag_in_data"), three_tokens());
  // 32 words a row in packets of three words: 11 of them, with runs of one word. A table entry of
  // two choices is one packet, for each of 4 tokens, used or not.
  EXPECT_EQ(traffic.links.at({2, 0}),
            (LinkTraffic{.messages = 26, .bytes = 416, .packets = 26, .flags = 0, .done = 0}));
  EXPECT_EQ(traffic.links.at({2, 1}),
            (LinkTraffic{.messages = 15, .bytes = 240, .packets = 15, .flags = 0, .done = 0}));
  EXPECT_EQ(traffic.links.at({0, 2}),
            (LinkTraffic{.messages = 23, .bytes = 356, .packets = 22, .flags = 0, .done = 1}));
  EXPECT_EQ(traffic.links.at({1, 2}),
            (LinkTraffic{.messages = 12, .bytes = 180, .packets = 11, .flags = 0, .done = 1}));
  EXPECT_EQ(traffic.links.size(), 4U);
  EXPECT_EQ(traffic.hops, 2);
}

TEST(Prediction, ChunksWithoutRowsAreNotSignalled) {
  const ExchangeTraffic traffic = predict(plan_of("chunked"), three_tokens());
  const LinkTraffic there = traffic.links.at({2, 0});
  // Two rows of 8 vectors; they share a chunk or not, as the plan says.
  EXPECT_EQ(there.packets, 4U);
  EXPECT_GE(there.flags, 1U);
  EXPECT_LE(there.flags, 2U);
  EXPECT_EQ(there.messages, 4 + 2 * 8 + there.flags);
  EXPECT_EQ(there.bytes, 4 * 16 + 2 * 128 + there.flags * 4);
  EXPECT_EQ(traffic.links.at({2, 1}).flags, 1U);

  ExchangeCase nothing = three_tokens();
  nothing.received[0].rows.clear();
  nothing.received[1].rows.clear();
  const ExchangeTraffic silent = predict(plan_of("chunked"), nothing);
  EXPECT_EQ(silent.links.at({2, 0}).flags, 0U);
  EXPECT_EQ(silent.links.at({0, 2}),
            (LinkTraffic{.messages = 1, .bytes = 4, .packets = 0, .flags = 0, .done = 1}));
  EXPECT_EQ(silent.hops, 1);
}

// Four dispatch CTAs, so four slices of one token. A slice has one packet of counts, one of its two
// choices and one of their weights; a row is one copy and a flag.
TEST(Prediction, Bulk) {
  const ExchangeTraffic traffic = predict(plan_of("bulk"), three_tokens());
  EXPECT_EQ(traffic.links.at({2, 0}),
            (LinkTraffic{.messages = 16, .bytes = 456, .packets = 12, .flags = 2, .done = 0}));
  EXPECT_EQ(traffic.links.at({2, 1}),
            (LinkTraffic{.messages = 14, .bytes = 324, .packets = 12, .flags = 1, .done = 0}));
  // Replies are vectors: 8 a row, a flag a row, and the done word.
  EXPECT_EQ(traffic.links.at({1, 2}),
            (LinkTraffic{.messages = 10, .bytes = 136, .packets = 0, .flags = 1, .done = 1}));
  EXPECT_EQ(traffic.hops, 2);
}

TEST(Prediction, DifferencesAreNamed) {
  ExchangeTraffic seen = predict(plan_of("flag_in_data"), three_tokens());
  const ExchangeTraffic right = seen;
  EXPECT_THAT(differences(seen, right), IsEmpty());
  seen.links[{0, 2}].done = 2;
  seen.hops = 3;
  EXPECT_THAT(differences(seen, right),
              ElementsAre("rank 0 to rank 2: 2 done words, the plan predicts 1",
                          "3 serialized hops, the plan predicts 2"));
}

// Every rank tells both others, in both parts of the exchange.
TEST(Prediction, BarriersReachEveryRank) {
  const ExchangeTraffic plain = predict(plan_of("flag_in_data"), three_tokens());
  const ExchangeTraffic traffic =
      predict(plan_of("flag_in_data", "entry_barrier: true"), three_tokens());
  EXPECT_EQ(traffic.links.size(), 6U);
  const LinkTraffic two_words{.messages = 2, .bytes = 8, .packets = 0, .flags = 2, .done = 0};
  EXPECT_EQ(traffic.links.at({0, 1}), two_words);
  EXPECT_EQ(traffic.links.at({1, 0}), two_words);
  EXPECT_EQ(traffic.links.at({2, 0}).messages, plain.links.at({2, 0}).messages + 2);
  EXPECT_EQ(traffic.links.at({0, 2}).flags, 2U);
  // entry -> rows -> the workers' entry to the second part -> replies.
  EXPECT_EQ(traffic.hops, 4);
}

// Four experts a rank fit one packet of counts. Nobody counts where rows may go: from the source to
// the workers first, back in the second part.
TEST(Prediction, RanksWithoutRowsForEachOtherSaySo) {
  const ExchangeTraffic plain = predict(plan_of("flag_in_data"), three_tokens());
  const ExchangeTraffic traffic =
      predict(plan_of("flag_in_data", "dummy_experts: true"), three_tokens());
  EXPECT_EQ(traffic.links.at({0, 1}),
            (LinkTraffic{.messages = 2, .bytes = 32, .packets = 2, .flags = 0, .done = 0}));
  EXPECT_EQ(traffic.links.at({2, 0}).packets, plain.links.at({2, 0}).packets + 1);
  EXPECT_EQ(traffic.links.at({0, 2}).packets, plain.links.at({0, 2}).packets + 1);
  EXPECT_EQ(traffic.hops, 2);
}

}  // namespace
}  // namespace afdep::verify
