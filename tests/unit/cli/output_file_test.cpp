#include "cli/output_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <thread>

#include "tests/unit/bundle/temporary_folder.h"

namespace afdep::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(OutputFile, ReplacesAFileAndLeavesNothingBeside) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.svg";
  write_text(path, "old and longer");
  ASSERT_TRUE(write_file(path, "new").ok());
  EXPECT_EQ(read_text(path), "new");
  EXPECT_EQ(files_in(folder.path()), 1U);
}

TEST(OutputFile, ALinkStaysALink) {
  const TemporaryFolder folder;
  write_text(folder.path() / "a.svg", "old");
  fs::create_symlink("a.svg", folder.path() / "link");
  ASSERT_TRUE(write_file(folder.path() / "link", "new").ok());
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_text(folder.path() / "a.svg"), "new");
}

// A rename would put a file where the device was.
TEST(OutputFile, ADeviceIsWrittenToAndNotReplaced) {
  ASSERT_TRUE(write_file("/dev/null", "text").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const Result<void> full = write_file("/dev/full", "text");
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  ASSERT_FALSE(full.ok());
  EXPECT_THAT(to_string(full.diagnostics()),
              HasSubstr("/dev/full: error[E803]: cannot write the file: No space left on device"));
}

TEST(OutputFile, APipeIsWrittenTo) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  {
    const std::jthread reader([&] { read = read_text(pipe); });
    EXPECT_TRUE(write_file(pipe, "text").ok());
  }
  EXPECT_EQ(read, "text");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(OutputFile, SaysWhyItCannotBeWritten) {
  const TemporaryFolder folder;
  const Result<void> folder_itself = write_file(folder.path(), "text");
  ASSERT_FALSE(folder_itself.ok());
  EXPECT_THAT(to_string(folder_itself.diagnostics()), HasSubstr("Is a directory"));
  const Result<void> nowhere = write_file(folder.path() / "no/such/a.svg", "text");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(to_string(nowhere.diagnostics()), HasSubstr("No such file or directory"));
  EXPECT_EQ(files_in(folder.path()), 0U);
}

}  // namespace
}  // namespace afdep::cli
