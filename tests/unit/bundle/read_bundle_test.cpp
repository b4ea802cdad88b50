#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "runtime/bundle/bundle.h"
#include "tests/unit/bundle/sample_manifest.h"
#include "tests/unit/bundle/temporary_folder.h"

namespace afdep::bundle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(ReadBundle, ReturnsWhatWasWritten) {
  const TemporaryFolder folder;
  const Bundle written = sample_bundle();
  const fs::path path = folder.path() / "bundle";
  ASSERT_TRUE(write_bundle(path, written).ok());
  const Result<Bundle> read = read_bundle(path);
  ASSERT_TRUE(read.ok()) << to_string(read.diagnostics());
  EXPECT_EQ(read->manifest(), written.manifest());
  EXPECT_EQ(read->files(), written.files());
  EXPECT_EQ(read->plan_text(), "the plan\n");
}

struct Damage {
  const char* name;
  std::function<void(const fs::path&)> apply;
  const char* message;
};

class DamagedBundle : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedBundle, IsRefusedByTheFilesName) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "b";
  ASSERT_TRUE(write_bundle(path, sample_bundle()).ok());
  GetParam().apply(path);
  const Result<Bundle> read = read_bundle(path);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.diagnostics().front().code, ErrorCode::kBundle);
  EXPECT_THAT(to_string(read.diagnostics()), HasSubstr(GetParam().message));
  EXPECT_FALSE(read.diagnostics().front().note.empty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, DamagedBundle,
    ::testing::Values(
        Damage{"NoManifest", [](const fs::path& b) { fs::remove(b / "manifest.json"); },
               "b/manifest.json: error[E804]: is missing: the folder is no bundle"},
        Damage{"TruncatedManifest",
               [](const fs::path& b) { fs::resize_file(b / "manifest.json", 100); },
               "b/manifest.json: error[E804]: byte 101 of 100"},
        Damage{"MissingSource", [](const fs::path& b) { fs::remove(b / "src/reply_b2.cu"); },
               "b/src/reply_b2.cu: error[E804]: is missing; manifest.json lists it"},
        Damage{"ShortCubin",
               [](const fs::path& b) {
                 fs::resize_file(b / "bin/sm_90a/afdep_sample_reply_b2.cubin", 7);
               },
               "afdep_sample_reply_b2.cubin: error[E804]: has 7 bytes; manifest.json says 42"},
        Damage{"FlippedBit",
               [](const fs::path& b) {
                 write_text(b / "src/reply_b2.cu", "// source of afdep_sample_reply_b3\n");
               },
               "b/src/reply_b2.cu: error[E804]: checksum is "},
        Damage{"ExtraFile", [](const fs::path& b) { write_text(b / "src/other.cu", ""); },
               "b/src/other.cu: error[E804]: is not listed in manifest.json"},
        Damage{"Link",
               [](const fs::path& b) {
                 fs::rename(b / "plan.txt", b.parent_path() / "plan.txt");
                 fs::create_symlink(b.parent_path() / "plan.txt", b / "plan.txt");
               },
               "b/plan.txt: error[E804]: is missing; manifest.json lists it"},
        Damage{"Gone", [](const fs::path& b) { fs::remove_all(b); },
               "b: error[E804]: does not exist"},
        Damage{"AFile",
               [](const fs::path& b) {
                 fs::remove_all(b);
                 write_text(b, "text");
               },
               "b: error[E804]: is not a directory"}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace afdep::bundle
