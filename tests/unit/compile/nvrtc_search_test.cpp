#include <fstream>

#include <gtest/gtest.h>

#include "generator/compile/nvrtc_library.h"
#include "tests/unit/compile/scratch_folder.h"

namespace afdep::compile {
namespace {

namespace fs = std::filesystem;

fs::path make_file(const fs::path& path, const std::string& text = "x") {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST(NvrtcSearch, TakesTheFirstPlaceThatHasTheLibrary) {
  const ScratchFolder scratch;
  const fs::path& root = scratch.path();
  fs::create_directories(root / "bin");
  NvrtcSearch search{.override_file = {},
                     .program_folder = root / "bin",
                     .cuda_home = root / "cuda",
                     .library_folders = {root / "system"}};
  const auto found = [&] {
    const auto file = locate_nvrtc(search);
    return file.ok() ? fs::weakly_canonical(*file).lexically_relative(root).string()
                     : file.diagnostics()[0].message;
  };
  make_file(root / "system/libnvrtc.so.13");
  EXPECT_EQ(found(), "system/libnvrtc.so.13");
  make_file(root / "cuda/lib64/libnvrtc.so.13");
  EXPECT_EQ(found(), "cuda/lib64/libnvrtc.so.13");
  make_file(root / "lib/libnvrtc.so.13");
  EXPECT_EQ(found(), "lib/libnvrtc.so.13");
  search.override_file = make_file(root / "mine.so");
  EXPECT_EQ(found(), "mine.so");
}

TEST(NvrtcSearch, AnOverrideThatIsNotThereIsAnError) {
  const ScratchFolder scratch;
  make_file(scratch.path() / "libnvrtc.so.13");
  const auto file = locate_nvrtc({.override_file = "/no/such/file.so",
                                  .program_folder = {},
                                  .cuda_home = {},
                                  .library_folders = {scratch.path()}});
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.diagnostics()[0].code, ErrorCode::kToolchain);
  EXPECT_EQ(file.diagnostics()[0].message, "AFDEP_NVRTC = /no/such/file.so is not a file");
}

TEST(NvrtcIdentity, RefusesWhatIsNoLibrary) {
  const ScratchFolder scratch;
  for (const std::string text : {"", "x",
                                 "\x7f"
                                 "ELF"}) {
    const auto identity = nvrtc_identity(make_file(scratch.path() / "a.so", text));
    ASSERT_FALSE(identity.ok());
    EXPECT_EQ(identity.diagnostics()[0].code, ErrorCode::kToolchain);
  }
  EXPECT_FALSE(nvrtc_identity("/no/such/file.so").ok());
}

// A minimal ELF file: header, one note segment with the build id that `id` spells.
std::string library_with_note(const std::string& id, const std::string& rest) {
  std::string file(64 + 56, '\0');
  file.replace(0, 6,
               "\x7f"
               "ELF\x02\x01");
  file[32] = 64;  // program headers behind this one
  file[54] = 56;
  file[56] = 1;
  file[64] = 4;  // PT_NOTE
  file[64 + 8] = 120;
  file[64 + 32] = static_cast<char>(12 + 4 + id.size());
  std::string note = {4,   0,   0,   0, static_cast<char>(id.size()), 0, 0, 0, 3, 0, 0, 0,
                      'G', 'N', 'U', 0};
  return file + note + id + rest;
}

TEST(NvrtcIdentity, IsTheBuildIdWhereverTheFileLies) {
  const ScratchFolder scratch;
  const std::string id = "\x01\x02\x03\x04\xfe\xdc\xba\x98";
  const auto one = nvrtc_identity(make_file(scratch.path() / "a.so", library_with_note(id, "a")));
  const auto two = nvrtc_identity(make_file(scratch.path() / "b.so", library_with_note(id, "bb")));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(*one, "01020304fedcba98");
  EXPECT_EQ(*two, *one);
}

TEST(NvrtcIdentity, WithoutABuildIdHashesTheBytes) {
  const ScratchFolder scratch;
  const auto identity_of = [&](const std::string& rest) {
    std::string file = library_with_note("12345678", rest);
    file[64] = 1;  // not a note
    const auto identity = nvrtc_identity(make_file(scratch.path() / "a.so", file));
    return identity.ok() ? *identity : "failed";
  };
  EXPECT_EQ(identity_of("a").size(), 32u);
  EXPECT_EQ(identity_of("a"), identity_of("a"));
  EXPECT_NE(identity_of("a"), identity_of("b"));
}

TEST(NvrtcLibrary, SaysWhyAFileCannotBeOpened) {
  const ScratchFolder scratch;
  const auto library = NvrtcLibrary::open(make_file(scratch.path() / "a.so"));
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.diagnostics()[0].code, ErrorCode::kToolchain);
  EXPECT_NE(library.diagnostics()[0].message.find("a.so"), std::string::npos);
}

}  // namespace
}  // namespace afdep::compile
