#include "generator/verify/token.h"

#include <gtest/gtest.h>

#include <string>

namespace afdep::verify {
namespace {

Token sample() {
  Token token;
  token.version = "0.1.0";
  token.spec_digest = "8127d93888db8e930089c20ee85096f4";
  token.explore = 3;
  token.seed = 0x123456789abcdef0;
  token.bucket = 512;
  token.true_size = true;
  token.faults = false;
  token.whole = false;
  token.attention_ranks = 22;
  token.ffn_ranks = 2;
  token.tokens = 1;
  token.exchanges = 3;
  token.search = 1;
  token.fill = 2;
  token.choices = {0, 0, 0, 7, 7, 0xffffffff, 1};
  token.trace = 0xfedcba9876543210;
  return token;
}

TEST(Token, SurvivesTheTrip) {
  const std::string text = encode(sample());
  EXPECT_EQ(
      text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.r"),
      std::string::npos);
  const Result<Token> token = decode(text);
  ASSERT_TRUE(token.ok()) << to_string(token.diagnostics());
  EXPECT_EQ(*token, sample());
}

TEST(Token, LongSchedulesStayShort) {
  Token token = sample();
  token.choices.assign(5000, 3);
  EXPECT_LT(encode(token).size(), 200U);
  EXPECT_EQ(decode(encode(token))->choices.size(), 5000U);
}

TEST(Token, EveryDamageIsNoticed) {
  const std::string right = encode(sample());
  for (std::size_t i = 0; i < right.size(); ++i) {
    std::string wrong = right;
    wrong[i] = wrong[i] == 'A' ? 'B' : 'A';
    const Result<Token> token = decode(wrong);
    // The last digit carries bits that stand for nothing.
    if (i + 1 == right.size() && token.ok()) continue;
    ASSERT_FALSE(token.ok()) << i;
    EXPECT_EQ(token.diagnostics().front().code, ErrorCode::kVerification);
  }
  for (std::size_t size = 0; size < right.size(); ++size) {
    EXPECT_FALSE(decode(right.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(decode("").ok());
  EXPECT_FALSE(decode("nonsense").ok());
  EXPECT_FALSE(decode(right + "A A").ok());
}

TEST(Token, OfAnotherVersionOrSpecIsRefusedByName) {
  const Result<void> version = check_token(sample(), "0.2.0", sample().spec_digest, "qwen.yaml");
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(to_string(version.diagnostics()),
            "error[E802]: --replay: the token is of afdep 0.1.0, this is 0.2.0\n"
            "  note: replay it with that version, or verify again\n");
  const Result<void> spec = check_token(sample(), "0.1.0", "00", "qwen.yaml");
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(to_string(spec.diagnostics()),
            "qwen.yaml: error[E802]: --replay: the token is of another spec: its digest is "
            "8127d93888db8e930089c20ee85096f4, that of this one is 00\n"
            "  note: name the spec that the token was printed for, unchanged\n");
  EXPECT_TRUE(check_token(sample(), "0.1.0", sample().spec_digest, "qwen.yaml").ok());
}

TEST(Token, WhatIsNoneIsRefusedByItsBeginning) {
  const std::string remedy =
      "  note: copy the whole word behind --replay from the report of the failure\n";
  EXPECT_EQ(to_string(decode("nonsense").diagnostics()),
            "error[E704]: --replay: \"nonsense\" is no token, or a part of one\n" + remedy);
  const std::string right = encode(sample());
  EXPECT_EQ(to_string(decode(right.substr(0, right.size() - 1)).diagnostics()),
            "error[E704]: --replay: \"" + right.substr(0, 40) +
                "...\" is no token, or a part of one\n" + remedy);
}

}  // namespace
}  // namespace afdep::verify
