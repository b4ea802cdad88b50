#include <gtest/gtest.h>

#include "tests/litmus/litmus.h"

namespace afdep::litmus {
namespace {

class LitmusTest : public ::testing::TestWithParam<Litmus> {};

// Exactly the allowed outcomes: each of them is reached, nothing else is.
TEST_P(LitmusTest, ReachesWhatIsAllowedAndNothingElse) {
  const Litmus& litmus = GetParam();
  const std::set<std::string> allowed(litmus.allowed.begin(), litmus.allowed.end());
  for (const std::string& outcome : litmus.forbidden) EXPECT_FALSE(allowed.contains(outcome));
  for (const std::string& outcome : litmus.not_produced) EXPECT_FALSE(allowed.contains(outcome));
  EXPECT_EQ(outcomes(litmus), allowed);
}

std::string name_of(const ::testing::TestParamInfo<Litmus>& info) {
  std::string name;
  bool upper = true;
  for (const char c : info.param.name) {
    if (c == '-') {
      upper = true;
      continue;
    }
    name += upper ? static_cast<char>(std::toupper(c)) : c;
    upper = false;
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Catalogue, LitmusTest, ::testing::ValuesIn(catalogue()), name_of);

}  // namespace
}  // namespace afdep::litmus
