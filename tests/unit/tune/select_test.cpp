#include "generator/tune/select.h"

#include <gtest/gtest.h>

#include "tests/unit/tune/sample.h"

namespace afdep::tune {
namespace {

using spec::Protocol;

Arm arm(int bucket, Protocol protocol, std::vector<spec::NumSms> pairs) {
  Arm made;
  for (const spec::NumSms& sms : pairs) made.variants.push_back({bucket, protocol, sms});
  return made;
}

// Two pairs, two buckets; bucket 1 has one arm for both.
std::vector<BucketArms> arms() {
  return {{1, {arm(1, Protocol::kFlagInData, {{24, 24}, {16, 48}})}},
          {2048,
           {arm(2048, Protocol::kChunked, {{24, 24}}), arm(2048, Protocol::kChunked, {{16, 48}}),
            arm(2048, Protocol::kBulk, {{24, 24}}), arm(2048, Protocol::kBulk, {{16, 48}})}}};
}

State measured(std::map<std::string, std::vector<double>> samples) {
  return {.identity = {}, .samples = std::move(samples), .refused = {}};
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(median_of({3, 1, 2}), 2);
  EXPECT_EQ(median_of({4, 1, 3, 2}), 3);
}

TEST(Select, TheFastestProtocolOfTheFastestPair) {
  const auto choice = choose(sample_spec(), arms(),
                             measured({{"1 flag_in_data 24+24", {5.0, 5.1, 9.0}},
                                       {"2048 chunked 24+24", {200, 201}},
                                       {"2048 chunked 16+48", {170, 171}},
                                       {"2048 bulk 24+24", {132, 133}},
                                       {"2048 bulk 16+48", {121, 122}}}));
  ASSERT_TRUE(choice.ok()) << to_string(choice.diagnostics());
  EXPECT_EQ(choice->sms, (spec::NumSms{16, 48}));
  EXPECT_DOUBLE_EQ(choice->score, 1);
  ASSERT_EQ(choice->buckets.size(), 2u);
  EXPECT_EQ(choice->buckets[0].protocol, Protocol::kFlagInData);
  EXPECT_DOUBLE_EQ(choice->buckets[0].us, 5.1);
  EXPECT_EQ(choice->buckets[1].protocol, Protocol::kBulk);
  EXPECT_DOUBLE_EQ(choice->buckets[1].us, 122);
  ASSERT_TRUE(choice->buckets[1].untuned.has_value());  // the planner's: 24 SMs a rank
  EXPECT_EQ(choice->buckets[1].untuned->sms, (spec::NumSms{24, 24}));
}

TEST(Select, PairsAsFastAsEachOtherGiveTheFewerSms) {
  // 2 x 24 + 2 x 24 = 96 SMs and 2 x 16 + 2 x 48 = 128: half a percent is no reason for 32 more.
  const auto choice = choose(sample_spec(), arms(),
                             measured({{"1 flag_in_data 24+24", {5}},
                                       {"2048 chunked 24+24", {150}},
                                       {"2048 bulk 24+24", {121}},
                                       {"2048 bulk 16+48", {120.4}}}));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->sms, (spec::NumSms{24, 24}));
}

TEST(Select, ASinglePairServesAllBuckets) {
  // Bucket 128 loses 10 % with 16+48, bucket 2048 gains 20 %.
  std::vector<BucketArms> two = arms();
  two[0] = {
      128,
      {arm(128, Protocol::kFlagInData, {{24, 24}}), arm(128, Protocol::kFlagInData, {{16, 48}})}};
  const auto choice = choose(sample_spec(), two,
                             measured({{"128 flag_in_data 24+24", {18}},
                                       {"128 flag_in_data 16+48", {19.8}},
                                       {"2048 bulk 24+24", {144}},
                                       {"2048 bulk 16+48", {120}}}));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->sms, (spec::NumSms{16, 48}));
  EXPECT_NEAR(choice->score, 1.0488, 1e-4);  // sqrt(1.1 x 1)
}

TEST(Select, ThePlannersProtocolWinsATie) {
  const spec::Spec spec = sample_spec();
  const Protocol own = untuned_variant(spec, 2048).protocol;
  const Protocol other = own == Protocol::kBulk ? Protocol::kChunked : Protocol::kBulk;
  const auto name = [](Protocol protocol) { return name_of({2048, protocol, {24, 24}}); };
  const auto choice =
      choose(spec, arms(),
             measured({{"1 flag_in_data 24+24", {5}}, {name(own), {100.5}}, {name(other), {100}}}));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->buckets[1].protocol, own);
}

TEST(Select, APairThatSomeBucketCannotRunIsNoChoice) {
  const auto choice =
      choose(sample_spec(), arms(),
             measured({{"1 flag_in_data 24+24", {5}}, {"2048 chunked 24+24", {200}}}));
  ASSERT_TRUE(choice.ok());
  EXPECT_EQ(choice->sms, (spec::NumSms{24, 24}));
}

TEST(Select, NothingMeasuredIsRefusedWithAReason) {
  State state = measured({{"1 flag_in_data 24+24", {5}}});
  state.refused["2048 bulk 24+24"] = "192 CTAs must be resident";
  const auto choice = choose(sample_spec(), arms(), state);
  ASSERT_FALSE(choice.ok());
  EXPECT_EQ(choice.diagnostics()[0].message,
            "no numbers of SMs could be measured in every bucket; 2048 bulk 24+24: 192 CTAs must "
            "be resident");
}

}  // namespace
}  // namespace afdep::tune
