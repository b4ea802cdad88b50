#include "generator/spec/overrides.h"

#include <gtest/gtest.h>

#include "generator/spec/compare.h"
#include "generator/spec/reader.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

Result<Spec> changed(std::vector<Override> overrides, const std::string& text = kMinimal) {
  return with_overrides(text, "f.yaml", overrides);
}

TEST(Overrides, ReplaceAndAddKeys) {
  const Result<Spec> spec = changed({{"capacity.tokens_per_rank", "4"},
                                     {"capacity.buckets", "[1, 4]"},
                                     {"model.hidden_size", "64"},
                                     {"routing.id_dtype", "int32"},
                                     {"topology.ratio", "3A2F"},
                                     {"kernel.num_sms.ffn", "16"},
                                     {"kernel.protocol.1", "flag_in_data"},
                                     {"ablation.exit_barrier", "false"},
                                     {"name", "small"}});
  ASSERT_TRUE(spec.ok()) << to_string(spec.diagnostics());
  const Result<Spec> written = parse(
      "schema_version: 1\nname: small\nmodel: {hidden_size: 64, num_experts: 8, top_k: 2}\n"
      "topology: {ratio: 3A2F}\ncapacity: {tokens_per_rank: 4, buckets: [1, 4]}\n"
      "routing: {id_dtype: int32}\n"
      "kernel: {num_sms: {ffn: 16}, protocol: {1: flag_in_data}}\n",
      "g.yaml");
  ASSERT_TRUE(written.ok());
  EXPECT_TRUE(same_values(*spec, *written));
  EXPECT_EQ(spec->model.hidden_size.place, (Place{"override model.hidden_size", 1, 1}));
}

TEST(Overrides, ShrinkAShippedSpec) {
  const Result<Spec> spec = changed({{"model.hidden_size", "64"},
                                     {"model.num_experts", "8"},
                                     {"model.top_k", "2"},
                                     {"capacity.tokens_per_rank", "4"},
                                     {"capacity.buckets", "[1, 4]"}},
                                    file_text("specs/qwen3-30b-a3b-2a2f.yaml"));
  ASSERT_TRUE(spec.ok()) << to_string(spec.diagnostics());
  EXPECT_EQ(spec->model.hidden_size.value, 64);
  EXPECT_EQ(spec->capacity.buckets.value, (std::vector<int>{1, 4}));
}

TEST(Overrides, ApplyBeforeValidation) {
  std::string text = kMinimal;
  text.replace(text.find("512"), 3, "0  ");
  EXPECT_FALSE(parse(text, "f.yaml").ok());
  EXPECT_TRUE(changed({{"capacity.tokens_per_rank", "8"}}, text).ok());
}

TEST(Overrides, ApplyInOrder) {
  const Result<Spec> spec = changed({{"model.top_k", "1"}, {"model.top_k", "4"}});
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->model.top_k.value, 4);
}

TEST(Overrides, RefuseUnknownPaths) {
  const Result<Spec> spec = changed({{"capacity.tokens", "4"},
                                     {"model", "{top_k: 1}"},
                                     {"", "1"},
                                     {"ablation.exit_barier", "true"},
                                     {"capacity.buckets.0", "1"}});
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(
      to_string(spec.diagnostics()),
      "override capacity.tokens: error[E001]: unknown key capacity.tokens\n"
      "  note: did you mean capacity.tokens_per_rank?\n"
      "override model: error[E001]: unknown key model\n"
      "  note: model is a section: override a key of it, such as model.preset\n"
      "override : error[E001]: unknown key \n"
      "  note: the keys of the top level are schema_version, name, model, topology, capacity, "
      "routing, dispatch, reply, weights, receive, placement, shared_experts, kernel, pipeline, "
      "graph, checks, stats, timeouts, cache, ablation\n"
      "override capacity.buckets.0: error[E001]: unknown key capacity.buckets.0\n"
      "  note: did you mean capacity.buckets?\n"
      "override ablation.exit_barier:1:1: error[E001]: unknown key ablation.exit_barier\n"
      "  note: did you mean exit_barrier?\n");
}

TEST(Overrides, RefuseBadValues) {
  const Result<Spec> spec = changed({{"model.top_k", "010"},
                                     {"model.num_experts", ""},
                                     {"model.hidden_size", "[1"},
                                     {"capacity.buckets", "&a [1]"},
                                     {"capacity.tokens_per_rank", "\t4"}});
  ASSERT_FALSE(spec.ok());
  const std::string text = to_string(spec.diagnostics());
  for (const char* part :
       {"override model.top_k:1:1: error[E002]: model.top_k = 010 is not a plain decimal integer",
        "override model.num_experts:1:1: error[E002]: model.num_experts is given no value",
        "override model.hidden_size:1:1: error[E000]: not YAML: ",
        "override capacity.buckets:1:1: error[E001]: a spec has no anchors",
        "override capacity.tokens_per_rank:1:1: error[E000]: a tab"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST(Overrides, RefuseAPathBelowAScalar) {
  const Result<Spec> spec =
      changed({{"kernel.num_sms.ffn", "8"}}, kMinimal + std::string("kernel: {num_sms: 4}\n"));
  ASSERT_FALSE(spec.ok());
  EXPECT_EQ(to_string(spec.diagnostics()),
            "override kernel.num_sms.ffn:1:1: error[E002]: kernel.num_sms.ffn is set below "
            "kernel.num_sms, which is not a mapping\n"
            "  note: override the whole key instead\n");
}

}  // namespace
}  // namespace afdep::spec
