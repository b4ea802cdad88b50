// Every spec that is shipped becomes a bundle: each kernel compiles without a remark or a spill and
// within the plan's ceilings, for the architectures that the spec names.
#include <gtest/gtest.h>

#include <string>

#include "generator/generate.h"
#include "generator/spec/reader.h"
#include "generator/spec/source_text.h"
#include "tests/specs/shipped.h"

namespace afdep {
namespace {

class ShippedSpec : public ::testing::TestWithParam<std::string> {};

TEST_P(ShippedSpec, Compiles) {
  const std::string file = "specs/" + GetParam() + ".yaml";
  const Result<std::string> text = spec::read_text(file);
  ASSERT_TRUE(text.ok()) << to_string(text.diagnostics());
  const Result<spec::Spec> spec = spec::parse(*text, file);
  ASSERT_TRUE(spec.ok()) << to_string(spec.diagnostics());
  const Result<Generated> generated = generate(*spec, {.threads = 1});
  ASSERT_TRUE(generated.ok()) << to_string(generated.diagnostics());
  // Dispatch, receive, reply and collect of each bucket; a bucket with a view has one more.
  EXPECT_GE(generated->sources.size(), 4 * generated->plan.buckets.size());
  EXPECT_EQ(generated->modules.size(), generated->sources.size() * generated->plan.arches.size());
}

INSTANTIATE_TEST_SUITE_P(All, ShippedSpec, ::testing::ValuesIn(shipped_spec_names()),
                         shipped_spec_test_name);

}  // namespace
}  // namespace afdep
