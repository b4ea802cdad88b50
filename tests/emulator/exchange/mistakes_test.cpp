// Emitted kernels with a mistake in them must not verify.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "generator/generate.h"
#include "generator/verify/verify.h"

namespace afdep::verify {
namespace {

using ::testing::HasSubstr;

constexpr const char* kSpec = R"(schema_version: 1
name: victim
model: {hidden_size: 64, num_experts: 8, top_k: 3}
topology: {ratio: "2A2F"}
capacity: {tokens_per_rank: 48, buckets: [4, 48]}
receive: {expert_alignment: 4, padding: zero}
kernel: {num_sms: 4, protocol: {4: flag_in_data, 48: chunked}}
)";

struct Mistake {
  const char* name;
  const char* file;   // files whose name holds this are changed
  const char* right;  // every occurrence becomes `wrong`
  const char* wrong;
  const char* found;  // in one of the failures
};

class EveryMistake : public ::testing::TestWithParam<Mistake> {};

// The bundle with its sources changed; says if nothing was to be changed.
bundle::Bundle spoil(const bundle::Bundle& good, const Mistake& mistake) {
  std::vector<bundle::File> files;
  int changes = 0;
  for (const auto& [path, contents] : good.files()) {
    std::string text = contents;
    if (path.find(mistake.file) != std::string::npos) {
      const std::string right = mistake.right;
      const std::string wrong = mistake.wrong;
      for (std::size_t at = text.find(right); at != std::string::npos;
           at = text.find(right, at + wrong.size())) {
        text.replace(at, right.size(), wrong);
        ++changes;
      }
    }
    files.push_back({path, text});
  }
  EXPECT_GT(changes, 0) << "no emitted source holds: " << mistake.right;
  bundle::Manifest manifest = good.manifest();
  manifest.files.clear();
  Result<bundle::Bundle> bad = bundle::make_bundle(manifest, files);
  if (!bad.ok()) throw std::runtime_error(to_string(bad.diagnostics()));
  return std::move(*bad);
}

TEST_P(EveryMistake, IsFound) {
  const Result<Subject> subject = reduce(kSpec, "victim.yaml", 0);
  ASSERT_TRUE(subject.ok()) << to_string(subject.diagnostics());
  GenerateOptions emit_only;
  emit_only.emit_only = true;
  const Result<Generated> generated = generate(subject->spec, emit_only);
  ASSERT_TRUE(generated.ok()) << to_string(generated.diagnostics());
  const bundle::Bundle bad = spoil(generated->bundle, GetParam());
  const Result<VerifyReport> report = verify_bundle(*subject, bad, {});
  ASSERT_TRUE(report.ok()) << to_string(report.diagnostics());
  ASSERT_FALSE(report->failures.empty());
  EXPECT_THAT(to_string(report->failures), HasSubstr(GetParam().found));
  EXPECT_EQ(report->failures.front().code, ErrorCode::kVerification);
  EXPECT_THAT(report->failures.front().note, HasSubstr("afdep-gen verify victim.yaml --replay "));
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryMistake,
    ::testing::Values(
        Mistake{"done_words_never_move", "ffn_reply",
                "cfg::kDoneOffset + args.common.index * 4, generation)",
                "cfg::kDoneOffset + args.common.index * 4, 7)", "deadlock"},
        Mistake{"collect_looks_into_one_half", "attention_collect", "half_of(generation)", "0",
                "deadlock"},
        Mistake{"weight_of_another_choice", "ffn_receive", "row_weight = weight_of(ranks, own);",
                "row_weight = shuffle(weight_of(ranks, own), 0);", "weight of row"},
        Mistake{"second_worker_gets_no_rows", "attention_dispatch", "to.includes(1)",
                "to.includes(0)", "receive"},
        Mistake{"rows_are_not_aligned", "ffn_receive", "kAlignment = 4", "kAlignment = 1", "ends["},
        Mistake{"padding_is_not_zeroed", "ffn_receive",
                "zero_padding<cfg::kThreads, cfg::kBlocks, cfg::kAlignment, cfg::kRowWords>",
                "if (false) zero_padding<cfg::kThreads, cfg::kBlocks, cfg::kAlignment, "
                "cfg::kRowWords>",
                "padding row"},
        Mistake{"experts_on_the_wrong_worker", "attention_dispatch", "kExpertsPerWorker = 4",
                "kExpertsPerWorker = 8", "receive"}),
    [](const ::testing::TestParamInfo<Mistake>& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace afdep::verify
