#include "runtime/bundle/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "runtime/bundle/check_manifest.h"
#include "runtime/bundle/checksum.h"
#include "runtime/bundle/manifest_text.h"
#include "tests/unit/bundle/sample_manifest.h"

namespace afdep::bundle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string message_of(const Failure& failure) { return to_string(failure.diagnostics.front()); }

TEST(Manifest, WorldRanksPutTheFfnFirstUnlessAskedOtherwise) {
  Manifest manifest;
  manifest.attention_ranks = 3;
  manifest.ffn_ranks = 2;
  EXPECT_EQ(manifest.world_rank(Role::kFfn, 1), 1);
  EXPECT_EQ(manifest.world_rank(Role::kAttention, 0), 2);
  EXPECT_EQ(manifest.role_of(1), Role::kFfn);
  EXPECT_EQ(manifest.role_of(4), Role::kAttention);
  EXPECT_EQ(manifest.index_of(4), 2);
  manifest.ffn_first = false;
  EXPECT_EQ(manifest.world_rank(Role::kFfn, 1), 4);
  EXPECT_EQ(manifest.world_rank(Role::kAttention, 2), 2);
  EXPECT_EQ(manifest.role_of(2), Role::kAttention);
  EXPECT_EQ(manifest.index_of(3), 0);
}

TEST(Manifest, ChecksumIsXxh3Of128Bits) {
  // The published XXH3-128 of no bytes.
  EXPECT_EQ(checksum(""), "99aa06d3014798d86001c324468d497f");
}

TEST(ManifestText, ParsesWhatItPrints) {
  const Bundle bundle = sample_bundle();
  const std::string text = print(bundle.manifest());
  const Result<Manifest> parsed = parse_manifest(text, "manifest.json");
  ASSERT_TRUE(parsed.ok()) << to_string(parsed.diagnostics());
  EXPECT_EQ(*parsed, bundle.manifest());
  EXPECT_EQ(print(*parsed), text);
}

TEST(ManifestText, KeysAreSortedAndIndentedByTwo) {
  const std::string text = print(sample_bundle().manifest());
  EXPECT_TRUE(text.starts_with("{\n  \"abi_version\": 2,\n  \"afdep_version\": \"" AFDEP_VERSION
                               "\",\n  \"attention\": {\n    \"window\": ["))
      << text.substr(0, 200);
  EXPECT_TRUE(text.ends_with("\n}\n"));
}

// One edit of the text, and what the reader says of it.
struct Damage {
  const char* name;
  std::function<void(std::string&)> apply;
  const char* message;
};

void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

class DamagedManifest : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedManifest, IsRefusedByFileAndField) {
  std::string text = print(sample_bundle().manifest());
  GetParam().apply(text);
  const Result<Manifest> parsed = parse_manifest(text, "b/manifest.json");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(message_of(parsed.failure()), HasSubstr(GetParam().message));
  EXPECT_THAT(message_of(parsed.failure()), HasSubstr("b/manifest.json"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, DamagedManifest,
    ::testing::Values(
        Damage{"Truncated", [](std::string& text) { text.resize(text.size() / 2); },
               "error[E804]: byte "},
        Damage{"Empty", [](std::string& text) { text.clear(); }, "error[E804]: byte 1 of 0"},
        Damage{"Foreign", [](std::string& text) { text = "{\"name\": \"other\"}"; },
               "error[E804]: format: is not \"afdep-bundle\""},
        Damage{"List", [](std::string& text) { text = "[]"; },
               "error[E804]: format: is not \"afdep-bundle\""},
        Damage{"FormatVersion",
               [](std::string& text) {
                 replace(text, "\"format_version\": 2", "\"format_version\": 7");
               },
               "error[E802]: the bundle has format version 7, this runtime has 2"},
        Damage{"AbiVersion",
               [](std::string& text) { replace(text, "\"abi_version\": 2", "\"abi_version\": 9"); },
               "error[E802]: the bundle has ABI version 9, this runtime has 2"},
        Damage{"AfdepVersion",
               [](std::string& text) {
                 replace(text, "\"afdep_version\": \"" AFDEP_VERSION "\"",
                         "\"afdep_version\": \"99.1\"");
               },
               "error[E802]: the bundle has afdep version 99.1, this runtime has " AFDEP_VERSION},
        Damage{"Missing", [](std::string& text) { replace(text, "  \"hidden\": 64,\n", ""); },
               "error[E804]: hidden: is missing"},
        Damage{"Nested",
               [](std::string& text) { replace(text, "\"grid\": 2", "\"grid\": \"two\""); },
               "error[E804]: buckets[0].kernels[0].grid: is not an integer"},
        Damage{"Wide",
               [](std::string& text) { replace(text, "\"grid\": 2", "\"grid\": 99999999999"); },
               "error[E804]: buckets[0].kernels[0].grid: does not fit 32 bits"},
        Damage{"Unknown",
               [](std::string& text) {
                 replace(text, "\"hidden\": 64,", "\"hidden\": 64,\n  \"hidden_too\": 64,");
               },
               "error[E804]: hidden_too: is not a field of a manifest"},
        Damage{"Enumerator", [](std::string& text) { replace(text, "\"int64\"", "\"int16\""); },
               "error[E804]: id_type: is not one of int32, int64"},
        Damage{"Boolean",
               [](std::string& text) { replace(text, "\"has_view\": true", "\"has_view\": 1"); },
               "error[E804]: has_view: is not true or false"},
        // A changed number that is still legal is found by the manifest's own checksum.
        Damage{"Altered",
               [](std::string& text) { replace(text, "\"threads\": 64", "\"threads\": 96"); },
               "error[E804]: checksum: does not match the contents"}),
    [](const auto& each) { return each.param.name; });

// One contradiction, and what check() says of it.
struct Contradiction {
  const char* name;
  std::function<void(Manifest&)> apply;
  const char* message;
};

class ContradictoryManifest : public ::testing::TestWithParam<Contradiction> {};

TEST_P(ContradictoryManifest, IsRefused) {
  Manifest manifest = sample_manifest();
  GetParam().apply(manifest);
  const Result<void> result = check(manifest);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.diagnostics().front().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ContradictoryManifest,
    ::testing::Values(
        Contradiction{"Ranks", [](Manifest& m) { m.ffn_ranks = 0; }, "ffn_ranks = 0"},
        Contradiction{"TooManyRanks",
                      [](Manifest& m) {
                        m.attention_ranks = 63;
                        m.ffn_ranks = 2;
                      },
                      "65 ranks exceed 64"},
        Contradiction{"Row", [](Manifest& m) { m.row_bytes = 112; },
                      "row_bytes = 112 is not one BF16 row of hidden = 64"},
        Contradiction{"TopK", [](Manifest& m) { m.top_k = 9; }, "top_k = 9"},
        Contradiction{"Window", [](Manifest& m) { m.window_bytes = 768; },
                      "window_bytes = 768 is not the larger role's"},
        Contradiction{"Alignment", [](Manifest& m) { m.attention.window[1].offset = 128; },
                      "attention.window region \"view\": offset = 128"},
        Contradiction{"End", [](Manifest& m) { m.ffn.window[0].offset = 256; },
                      "ffn.window region \"table\" ends at 1280, beyond ffn.window_bytes = 1024"},
        Contradiction{"Items", [](Manifest& m) { m.ffn.window[0].items = 17; },
                      "ffn.window region \"table\": 17 items of 16 bytes exceed peer_bytes = 256"},
        Contradiction{"Peers", [](Manifest& m) { m.ffn.window[0].peers = 3; },
                      "ffn.window region \"table\": 3 peers of 256 bytes exceed half_bytes = 512"},
        Contradiction{"Overflow",
                      [](Manifest& m) { m.ffn.window[0].items = std::int64_t{1} << 62; },
                      "ffn.window region \"table\": a size is out of range"},
        Contradiction{"View", [](Manifest& m) { m.attention.window[1].name = "replies"; },
                      "has_view, but the attention window has no region \"view\" of 4 rows"},
        Contradiction{"Buckets", [](Manifest& m) { m.buckets[1].tokens = 2; },
                      "bucket 2 follows 2, of capacity 4"},
        Contradiction{
            "NoKernel",
            [](Manifest& m) { m.buckets[0].kernels.erase(m.buckets[0].kernels.begin() + 2); },
            "bucket 2 has no reply kernel"},
        Contradiction{"WrongRole", [](Manifest& m) { m.buckets[0].kernels[0].role = Role::kFfn; },
                      "kernel afdep_sample_dispatch_b2: dispatch is not an operation of ffn"},
        Contradiction{"Symbol", [](Manifest& m) { m.buckets[0].kernels[0].symbol = "../evil"; },
                      "bucket 2: symbol \"../evil\" is no identifier"},
        Contradiction{
            "Source", [](Manifest& m) { m.buckets[0].kernels[0].source = "src/../../x"; },
            "kernel afdep_sample_dispatch_b2: source = \"src/../../x\" is not below src/"},
        Contradiction{"Threads", [](Manifest& m) { m.buckets[0].kernels[0].threads = 2048; },
                      "kernel afdep_sample_dispatch_b2: threads = 2048"},
        Contradiction{"File", [](Manifest& m) { m.files = {{"/etc/passwd", 1, ""}}; },
                      "files: \"/etc/passwd\" is out of order or not a path of a bundle"}),
    [](const auto& each) { return each.param.name; });

TEST(MakeBundle, FillsVersionsAndFiles) {
  const Bundle bundle = sample_bundle();
  const Manifest& manifest = bundle.manifest();
  EXPECT_EQ(manifest.afdep_version, AFDEP_VERSION);
  EXPECT_EQ(manifest.abi_version, 2);
  // plan.txt, nine sources and nine cubins for each of two archs.
  EXPECT_EQ(manifest.files.size(), 1U + 9U + 18U);
  EXPECT_EQ(manifest.files.front().path, "bin/sm_100a/afdep_sample_collect_b2.cubin");
  EXPECT_THAT(bundle.arches(), ElementsAre("sm_100a", "sm_90a"));
  const Kernel& kernel = *manifest.buckets[0].find(Operation::kReply);
  EXPECT_EQ(bundle.source(kernel), "// source of afdep_sample_reply_b2\n");
  EXPECT_EQ(bundle.image(kernel, "sm_90a").size(), 42U);
  EXPECT_TRUE(bundle.image(kernel, "sm_80").empty());
}

TEST(MakeBundle, NamesAMissingAndASurplusFile) {
  const Manifest manifest = sample_manifest();
  std::vector<File> files = sample_files(manifest);
  files.pop_back();
  EXPECT_THAT(message_of(make_bundle(manifest, files).failure()),
              HasSubstr("the manifest names bin/sm_90a/afdep_sample_collect_view_b4.cubin, which "
                        "is missing"));
  files = sample_files(manifest);
  files.push_back({"src/extra.cu", ""});
  EXPECT_THAT(message_of(make_bundle(manifest, files).failure()),
              HasSubstr("no kernel of the manifest names src/extra.cu"));
}

}  // namespace
}  // namespace afdep::bundle
