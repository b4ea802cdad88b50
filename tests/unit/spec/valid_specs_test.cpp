// Every accepted spec, and what printing, reading back and comparing make of it.
#include <gtest/gtest.h>

#include "generator/spec/compare.h"
#include "generator/spec/digest.h"
#include "generator/spec/printer.h"
#include "generator/spec/reader.h"
#include "tests/unit/spec/spec_files.h"

namespace afdep::spec {
namespace {

Spec parsed(const std::string& text) {
  Result<Spec> spec = parse(text, "f.yaml");
  EXPECT_TRUE(spec.ok()) << (spec.ok() ? "" : to_string(spec.diagnostics()));
  return spec.ok() ? *spec : Spec{};
}

class ValidSpec : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ValidSpec, PrintsToTextThatParsesToTheSameValues) {
  const Spec spec = parsed(file_text(GetParam()));
  const std::string text = print(spec);
  const Spec again = parsed(text);
  EXPECT_TRUE(same_values(spec, again)) << text;
  EXPECT_EQ(print(again), text);
}

TEST_P(ValidSpec, PrintsEveryKeyToTextThatParsesToTheSameValues) {
  const Spec spec = parsed(file_text(GetParam()));
  const Spec again = parsed(print_resolved(spec));
  EXPECT_TRUE(same_values(spec, again)) << print_resolved(spec);
  EXPECT_EQ(digest(again), digest(spec));
}

std::vector<std::filesystem::path> all_valid() {
  std::vector<std::filesystem::path> files = spec_files("tests/specs/valid");
  const std::vector<std::filesystem::path> shipped = spec_files("specs");
  files.insert(files.end(), shipped.begin(), shipped.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, ValidSpec, testing::ValuesIn(all_valid()),
                         [](const auto& file) { return test_name(file.param); });

TEST(ShippedSpecs, AreNamedAsTheirFiles) {
  for (const auto& path : spec_files("specs")) {
    EXPECT_EQ(parsed(file_text(path)).name.value, path.stem().string());
  }
}

TEST(SameValues, SeesEveryDifference) {
  const Spec spec = parsed(kMinimal);
  Spec other = spec;
  EXPECT_TRUE(same_values(spec, other));
  other.model.hidden_size.place = {"elsewhere", 7, 7};
  other.model.hidden_size.given = false;
  EXPECT_TRUE(same_values(spec, other)) << "places do not matter";
  other.ablation.value["exit_barrier"] = false;
  EXPECT_TRUE(same_values(spec, other)) << "an ablation that is not given is false";
  other.ablation.value["exit_barrier"] = true;
  EXPECT_FALSE(same_values(spec, other));
  other = spec;
  other.bucket_protocol.value[512] = Protocol::kChunked;
  EXPECT_FALSE(same_values(spec, other));
  other = spec;
  other.num_sms.value.ffn = 1;
  EXPECT_FALSE(same_values(spec, other));
}

TEST(Print, WritesTheGivenKeysOnly) { EXPECT_EQ(print(parsed(kMinimal)), kMinimal); }

TEST(Print, QuotesWhatYamlWouldReadAsAnotherType) {
  const std::string text =
      "schema_version: 1\n"
      "name: \"1-2\"\n"
      "model:\n"
      "  preset: mixtral-8x7b\n"
      "topology:\n"
      "  ratio: \"1A1F\"\n"
      "  domains:\n"
      "    - {name: \"true\", count: 1, attention: 1, ffn: 1}\n"
      "capacity:\n"
      "  tokens_per_rank: 4\n"
      "kernel:\n"
      "  num_sms: {attention: auto, ffn: 8}\n"
      "  protocol: {4: chunked}\n"
      "  tuned_on: \"NVIDIA H200\"\n"
      "cache:\n"
      "  dir: \"/a b/\\\"c\\\"\\\\\"\n";
  EXPECT_EQ(print(parsed(text)), text);
}

TEST(PrintResolved, SaysWhereEachValueIsFrom) {
  const std::string text =
      print_resolved(parsed("schema_version: 1\n"
                            "name: merged\n"
                            "model:\n"
                            "  preset: deepseek-v3\n"
                            "  top_k: 6\n"
                            "topology:\n"
                            "  ratio: \"3A1F\"\n"
                            "  scale: 2\n"
                            "capacity:\n"
                            "  tokens_per_rank: 16\n"
                            "placement:\n"
                            "  redundant_experts: auto\n"));
  for (const char* line :
       {"name: merged  # given\n", "\n  preset: deepseek-v3  # given\n",
        "\n  hidden_size: 7168  # preset deepseek-v3\n",
        "\n  num_experts: 256  # preset deepseek-v3\n", "\n  top_k: 6  # given\n",
        "\n  # attention_ranks: 6  # from ratio\n", "\n  # ffn_ranks: 2  # from ratio\n",
        "\n  buckets: [16]  # default\n", "\n  scale: by_dtype  # default, here none\n",
        "\n  redundant_experts: auto  # given, here 0\n", "\n  count: 1  # preset deepseek-v3\n",
        "\n  mode: local  # default\n", "\n  # mixed: union  # default\n",
        "\n  device_ms: 30000  # default\n", "\n  exit_barrier: false  # default\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

}  // namespace
}  // namespace afdep::spec
