#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "tests/unit/bundle/sample_manifest.h"
#include "tests/unit/bundle/temporary_folder.h"

namespace afdep::bundle {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Names in a folder, hidden ones included.
std::vector<std::string> entries(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Bundle other_bundle() {
  Manifest manifest = sample_manifest();
  manifest.name = "other";
  return *make_bundle(manifest, sample_files(manifest));
}

TEST(WriteBundle, LaysOutManifestPlanSourcesAndCubins) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_bundle(folder.path() / "b", sample_bundle()).ok());
  EXPECT_THAT(entries(folder.path() / "b"),
              ::testing::ElementsAre("bin", "manifest.json", "plan.txt", "src"));
  EXPECT_THAT(entries(folder.path() / "b/bin"), ::testing::ElementsAre("sm_100a", "sm_90a"));
  EXPECT_THAT(entries(folder.path()), ::testing::ElementsAre("b"));
}

TEST(WriteBundle, EqualBundlesAreEqualBytes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_bundle(folder.path() / "one", sample_bundle()).ok());
  ASSERT_TRUE(write_bundle(folder.path() / "two", sample_bundle()).ok());
  EXPECT_EQ(read_tree(folder.path() / "one"), read_tree(folder.path() / "two"));
}

TEST(WriteBundle, ReplacesABundle) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "b";
  ASSERT_TRUE(write_bundle(path, sample_bundle()).ok());
  ASSERT_TRUE(write_bundle(path, other_bundle()).ok());
  EXPECT_EQ(read_bundle(path)->manifest().name, "other");
  EXPECT_THAT(entries(folder.path()), ::testing::ElementsAre("b"));
}

TEST(WriteBundle, ReplacesABundleOfAnotherVersion) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "b";
  ASSERT_TRUE(write_bundle(path, sample_bundle()).ok());
  std::string text = read_text(path / "manifest.json");
  text.replace(text.find("\"format_version\": 2"), 19, "\"format_version\": 0");
  write_text(path / "manifest.json", text);
  EXPECT_TRUE(write_bundle(path, other_bundle()).ok());
}

TEST(WriteBundle, TakesAnEmptyFolderMissingParentsAndATrailingSlash) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "empty");
  EXPECT_TRUE(write_bundle(folder.path() / "empty", sample_bundle()).ok());
  EXPECT_TRUE(write_bundle(folder.path() / "some where/new/", sample_bundle()).ok());
  EXPECT_TRUE(read_bundle(folder.path() / "some where/new").ok());
}

// Whoever comes second replaces the bundle of the first.
TEST(WriteBundle, SeveralWritersOfOneFolderTakeTurns) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "new/parent/b";
  std::vector<std::string> errors(4);
  {
    std::vector<std::jthread> writers;
    for (std::string& error : errors) {
      writers.emplace_back([&error, &path] {
        const Bundle bundle = sample_bundle();
        for (int round = 0; round < 4; ++round) {
          const Result<void> written = write_bundle(path, bundle);
          if (!written.ok()) error += to_string(written.diagnostics());
        }
      });
    }
  }
  EXPECT_THAT(errors, ::testing::Each(IsEmpty()));
  EXPECT_TRUE(read_bundle(path).ok());
  EXPECT_THAT(entries(path.parent_path()), ::testing::ElementsAre("b"));
}

TEST(WriteBundle, FollowsALinkToTheBundle) {
  const TemporaryFolder folder;
  ASSERT_TRUE(write_bundle(folder.path() / "b", sample_bundle()).ok());
  fs::create_directory_symlink(folder.path() / "b", folder.path() / "link");
  ASSERT_TRUE(write_bundle(folder.path() / "link", other_bundle()).ok());
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_bundle(folder.path() / "b")->manifest().name, "other");
}

TEST(WriteBundle, RefusesAForeignFolderByItsFirstEntry) {
  const TemporaryFolder folder;
  write_text(folder.path() / "thesis.tex", "years of work");
  write_text(folder.path() / "zebra", "");
  const Result<void> written = write_bundle(folder.path(), sample_bundle());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.diagnostics().front().code, ErrorCode::kDirectory);
  EXPECT_THAT(to_string(written.diagnostics()),
              HasSubstr("exists and is no readable bundle: it holds thesis.tex"));
  EXPECT_EQ(read_text(folder.path() / "thesis.tex"), "years of work");
}

TEST(WriteBundle, KeepsABundleToWhichSomebodyAddedAFile) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "b";
  ASSERT_TRUE(write_bundle(path, sample_bundle()).ok());
  write_text(path / "src/notes.md", "mine");
  const Result<void> written = write_bundle(path, other_bundle());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(to_string(written.diagnostics()),
              HasSubstr("holds src/notes.md, which is no part of the bundle there"));
  EXPECT_EQ(read_text(path / "src/notes.md"), "mine");
}

TEST(WriteBundle, RefusesAFile) {
  const TemporaryFolder folder;
  write_text(folder.path() / "b", "text");
  const Result<void> written = write_bundle(folder.path() / "b", sample_bundle());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(to_string(written.diagnostics()),
              HasSubstr("error[E803]: exists and is not a folder"));
}

TEST(WriteBundle, SaysWhyAFolderCannotBeWritten) {
  // Root writes everywhere, but not in /proc.
  const Result<void> written = write_bundle("/proc/afdep/bundle", sample_bundle());
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(to_string(written.diagnostics()),
              HasSubstr("/proc/afdep: error[E803]: cannot create the folder: "));
}

TEST(WriteBundle, ReadOnlyParentIsLeftAlone) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  const Result<void> written = write_bundle(folder.path() / "b", sample_bundle());
  fs::permissions(folder.path(), fs::perms::owner_all);
  ASSERT_FALSE(written.ok());
  EXPECT_THAT(to_string(written.diagnostics()), HasSubstr("Permission denied"));
  EXPECT_THAT(entries(folder.path()), IsEmpty());
}

TEST(WriteBundle, FullDiskLeavesTheOldBundle) {
  const TemporaryFolder folder;
  // Room for one bundle, but not for two.
  if (::mount("afdep-test", folder.path().c_str(), "tmpfs", 0, "size=192k") != 0) {
    GTEST_SKIP() << "cannot mount a small file system: " << std::strerror(errno);
  }
  Manifest manifest = sample_manifest();
  std::vector<File> files = sample_files(manifest);
  for (File& file : files) {
    if (file.path == "plan.txt") file.contents = std::string(60000, 'x');
  }
  const Bundle first = *make_bundle(manifest, files);
  EXPECT_TRUE(write_bundle(folder.path() / "b", first).ok());
  const Result<void> second = write_bundle(folder.path() / "b", first);
  const auto left = entries(folder.path());
  const bool readable = read_bundle(folder.path() / "b").ok();
  const Result<void> third = write_bundle(folder.path() / "new/c", first);
  const auto left_after_third = entries(folder.path());
  EXPECT_EQ(::umount(folder.path().c_str()), 0);

  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.diagnostics().front().code, ErrorCode::kDirectory);
  EXPECT_THAT(to_string(second.diagnostics()), HasSubstr("No space left on device"));
  EXPECT_THAT(to_string(second.diagnostics()), HasSubstr("free space on this file system"));
  EXPECT_THAT(left, ::testing::ElementsAre("b"));
  EXPECT_TRUE(readable);
  EXPECT_FALSE(third.ok());
  EXPECT_THAT(left_after_third, ::testing::ElementsAre("b"));
}

}  // namespace
}  // namespace afdep::bundle
