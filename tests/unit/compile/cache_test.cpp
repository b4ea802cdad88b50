// The cache with a compiler that only counts; tests/compile runs it with NVRTC.
#include "generator/compile/cache.h"

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/compile/scratch_folder.h"

namespace afdep::compile {
namespace {

namespace fs = std::filesystem;

const KernelSource kSource = {"k", "k.cu", "extern \"C\" __global__ void k() {}\n"};
const CompileOptions kOptions = {.headers = {{"afdep/abi.h", "struct A {};\n"}}};

CompiledModule sample_module(std::size_t size = 5000) {
  CompiledModule module{.symbol = "k",
                        .arch = "sm_90a",
                        .image = std::vector<std::byte>(size),
                        .log = {},
                        .registers = 40,
                        .spill_bytes = 1,
                        .local_bytes = 2,
                        .shared_bytes = 3};
  for (std::size_t i = 0; i < size; ++i) module.image[i] = static_cast<std::byte>(i * 7);
  return module;
}

class CacheTest : public ::testing::Test {
 protected:
  CacheTest() {
    // Any ELF file gives an identity; this program is one.
    search_.override_file = fs::read_symlink("/proc/self/exe");
  }

  ModuleCache cache(CacheMode mode, const fs::path& folder) {
    return ModuleCache(folder, mode, search_,
                       [this](const KernelSource&, std::string_view, const CompileOptions&) {
                         ++compilations_;
                         return Result<CompiledModule>(sample_module());
                       });
  }

  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      if (entry.is_regular_file()) all.push_back(entry.path());
    }
    return all;
  }

  fs::path folder() const { return scratch_.path() / "cache"; }

  ScratchFolder scratch_;
  NvrtcSearch search_;
  int compilations_ = 0;
};

TEST_F(CacheTest, CompilesOnceAndReturnsTheSameModule) {
  const auto first = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
  const auto second = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(*first, sample_module());
  EXPECT_EQ(*second, sample_module());
  EXPECT_EQ(compilations_, 1);
  ASSERT_EQ(files().size(), 1u);
  EXPECT_EQ(files()[0].filename(), request_key(kSource, "sm_90a", kOptions) + ".cubin");
}

TEST_F(CacheTest, AFailureOfTheCompilerIsReturnedAndNotStored) {
  ModuleCache failing(folder(), CacheMode::kJit, search_,
                      [](const KernelSource&, std::string_view, const CompileOptions&) {
                        return Result<CompiledModule>(Failure(ErrorCode::kToolchain, "no"));
                      });
  EXPECT_FALSE(failing.get(kSource, "sm_90a", kOptions).ok());
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(CacheTest, EveryPartOfTheRequestIsInTheKey) {
  std::set<std::string> keys;
  const auto add = [&](const KernelSource& source, std::string_view arch,
                       const CompileOptions& options) {
    const std::string key = request_key(source, arch, options);
    EXPECT_EQ(key.size(), 32u);
    EXPECT_TRUE(keys.insert(key).second) << keys.size();
  };
  add(kSource, "sm_90a", kOptions);
  add(kSource, "sm_100a", kOptions);
  add({"k2", "k.cu", kSource.text}, "sm_90a", kOptions);
  add({"k", "k2.cu", kSource.text}, "sm_90a", kOptions);
  add({"k", "k.cu", kSource.text + " "}, "sm_90a", kOptions);
  add(kSource, "sm_90a", {.headers = {}});
  add(kSource, "sm_90a", {.headers = {{"afdep/abi.h", "struct B {};\n"}}});
  add(kSource, "sm_90a", {.headers = {{"afdep/abi2.h", "struct A {};\n"}}});
  // The same bytes, cut elsewhere.
  add(kSource, "sm_90a", {.headers = {{"afdep/abi.hs", "truct A {};\n"}}});
  EXPECT_EQ(request_key(kSource, "sm_90a", kOptions), request_key(kSource, "sm_90a", kOptions));
}

TEST_F(CacheTest, ADamagedEntryIsCompiledAgainAndReplaced) {
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  const fs::path entry = files().at(0);
  std::string whole;
  {
    std::ifstream in(entry, std::ios::binary);
    whole.assign(std::istreambuf_iterator<char>(in), {});
  }
  const auto write = [&](const std::string& bytes) {
    std::ofstream(entry, std::ios::binary | std::ios::trunc) << bytes;
  };
  int expected = 1;
  const auto expect_replaced = [&](const std::string& bytes) {
    write(bytes);
    const auto module = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
    ASSERT_TRUE(module.ok());
    EXPECT_EQ(*module, sample_module());
    EXPECT_EQ(compilations_, ++expected);
    EXPECT_EQ(fs::file_size(entry), whole.size());
  };
  expect_replaced("");
  expect_replaced(whole.substr(0, 40));
  expect_replaced(whole.substr(0, whole.size() - 1));
  expect_replaced(whole + "x");
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{8}, std::size_t{16}, std::size_t{32}, std::size_t{64},
        std::size_t{80}, std::size_t{97}, whole.size() - 1}) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x20);
    expect_replaced(damaged);
  }
}

TEST_F(CacheTest, AnEntryUnderAnotherKeysNameIsAMiss) {
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  const fs::path entry = files().at(0);
  fs::copy_file(entry,
                entry.parent_path() / (request_key(kSource, "sm_100a", kOptions) + ".cubin"));
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_100a", kOptions).ok());
  EXPECT_EQ(compilations_, 2);
}

TEST_F(CacheTest, AnotherCompilerHasItsOwnEntries) {
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  const fs::path other = scratch_.path() / "other.so";
  fs::copy_file(search_.override_file, other);
  ASSERT_TRUE(
      ModuleCache(
          folder(), CacheMode::kJit,
          {.override_file = other, .program_folder = {}, .cuda_home = {}, .library_folders = {}},
          [this](const KernelSource&, std::string_view, const CompileOptions&) {
            ++compilations_;
            return Result<CompiledModule>(sample_module());
          })
          .get(kSource, "sm_90a", kOptions)
          .ok());
  EXPECT_EQ(compilations_, 1) << "the same build id at another path is the same compiler";

  // A different build id: the note's last byte is changed in place.
  const std::string identity = *nvrtc_identity(other);
  std::string bytes;
  {
    std::ifstream in(other, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  std::string id;
  for (std::size_t i = 0; i < identity.size(); i += 2) {
    id += static_cast<char>(std::stoi(identity.substr(i, 2), nullptr, 16));
  }
  const std::size_t at = bytes.find(id);
  ASSERT_NE(at, std::string::npos);
  bytes[at + id.size() - 1] ^= 1;
  const fs::path third = scratch_.path() / "third.so";
  std::ofstream(third, std::ios::binary) << bytes;
  search_.override_file = third;
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  EXPECT_EQ(compilations_, 2);
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(CacheTest, AheadOfTimeNeverCompiles) {
  const auto miss = cache(CacheMode::kAot, folder()).get(kSource, "sm_90a", kOptions);
  ASSERT_FALSE(miss.ok());
  EXPECT_EQ(miss.diagnostics()[0].code, ErrorCode::kCacheMiss);
  EXPECT_FALSE(fs::exists(folder()));

  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  search_.override_file = "/no/such/file.so";  // a serving node has no NVRTC
  const auto hit = cache(CacheMode::kAot, folder()).get(kSource, "sm_90a", kOptions);
  ASSERT_TRUE(hit.ok());
  EXPECT_EQ(*hit, sample_module());
  EXPECT_EQ(compilations_, 1);
}

TEST_F(CacheTest, JustInTimeWithoutACompilerIsAnErrorEvenOnAWarmCache) {
  ASSERT_TRUE(cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions).ok());
  search_.override_file = "/no/such/file.so";
  const auto module = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.diagnostics()[0].code, ErrorCode::kToolchain);
}

TEST_F(CacheTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(scratch_.path() / "file") << "x";
  const auto module =
      cache(CacheMode::kJit, scratch_.path() / "file/cache").get(kSource, "sm_90a", kOptions);
  ASSERT_FALSE(module.ok());
  const Diagnostic& diagnostic = module.diagnostics()[0];
  EXPECT_EQ(diagnostic.code, ErrorCode::kDirectory);
  EXPECT_NE(diagnostic.message.find("file/cache"), std::string::npos);
  EXPECT_NE(diagnostic.message.find("Not a directory"), std::string::npos) << diagnostic.message;
  EXPECT_NE(diagnostic.note.find("cache.dir"), std::string::npos);
}

// Mounts a small file system; false, with errno, where the test may not.
class SmallFileSystem {
 public:
  SmallFileSystem(fs::path at, unsigned long flags) : at_(std::move(at)) {
    fs::create_directories(at_);
    mounted_ = ::mount("tmpfs", at_.c_str(), "tmpfs", flags, "size=16k") == 0;
  }
  SmallFileSystem(const SmallFileSystem&) = delete;
  SmallFileSystem& operator=(const SmallFileSystem&) = delete;
  ~SmallFileSystem() {
    if (mounted_) ::umount(at_.c_str());
  }
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  fs::path at_;
  bool mounted_ = false;
};

TEST_F(CacheTest, AReadOnlyFolderIsNamed) {
  const SmallFileSystem small(folder(), MS_RDONLY);
  if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs takes CAP_SYS_ADMIN";
  const auto module = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.diagnostics()[0].code, ErrorCode::kDirectory);
  EXPECT_NE(module.diagnostics()[0].message.find("Read-only file system"), std::string::npos);
}

TEST_F(CacheTest, AFullDiskLeavesNothingBehind) {
  const SmallFileSystem small(folder(), 0);
  if (!small.mounted()) GTEST_SKIP() << "mounting a tmpfs takes CAP_SYS_ADMIN";
  ModuleCache big(folder(), CacheMode::kJit, search_,
                  [](const KernelSource&, std::string_view, const CompileOptions&) {
                    return Result<CompiledModule>(sample_module(64 * 1024));
                  });
  const auto module = big.get(kSource, "sm_90a", kOptions);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.diagnostics()[0].code, ErrorCode::kDirectory);
  EXPECT_NE(module.diagnostics()[0].message.find("No space left"), std::string::npos);
  EXPECT_TRUE(files().empty());
}

// The same path through a short write, without privileges: a limit on the size of files.
TEST_F(CacheTest, AWriteThatFailsHalfwayLeavesNothingBehind) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto module = cache(CacheMode::kJit, folder()).get(kSource, "sm_90a", kOptions);
    const bool named = !module.ok() && module.diagnostics()[0].code == ErrorCode::kDirectory;
    ::_exit(named ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(files().empty());
}

TEST_F(CacheTest, TwoProcessesMayFillOneEntry) {
  std::vector<pid_t> children;
  for (int process = 0; process < 2; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      bool fine = true;
      for (int i = 0; i < 50; ++i) {
        const KernelSource source = {"k", "k.cu", std::to_string(i)};
        const auto module = cache(CacheMode::kJit, folder()).get(source, "sm_90a", kOptions);
        fine = fine && module.ok() && *module == sample_module();
      }
      ::_exit(fine ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(files().size(), 50u);
  for (const fs::path& file : files()) EXPECT_EQ(file.extension(), ".cubin") << file;
}

TEST_F(CacheTest, ThreadsMayShareACache) {
  std::atomic<int> fine{0};
  ModuleCache shared(folder(), CacheMode::kJit, search_,
                     [](const KernelSource&, std::string_view, const CompileOptions&) {
                       return Result<CompiledModule>(sample_module());
                     });
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const auto module = shared.get({"k", "k.cu", std::to_string(i)}, "sm_90a", kOptions);
        fine += module.ok() && *module == sample_module() ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fine, 80);
  EXPECT_EQ(files().size(), 20u);
}

TEST(CacheFolder, FollowsTheBaseDirectorySpecification) {
  const auto folder_with = [](const char* xdg, const char* home) {
    xdg == nullptr ? ::unsetenv("XDG_CACHE_HOME") : ::setenv("XDG_CACHE_HOME", xdg, 1);
    home == nullptr ? ::unsetenv("HOME") : ::setenv("HOME", home, 1);
    const auto folder = default_cache_folder();
    return folder.ok() ? folder->string() : to_string(folder.diagnostics()[0].code);
  };
  EXPECT_EQ(folder_with("/x", "/h"), "/x/afdep");
  EXPECT_EQ(folder_with("", "/h"), "/h/.cache/afdep");
  EXPECT_EQ(folder_with("relative", "/h"), "/h/.cache/afdep");
  EXPECT_EQ(folder_with(nullptr, "/h"), "/h/.cache/afdep");
  EXPECT_EQ(folder_with(nullptr, nullptr), "E803");
}

}  // namespace
}  // namespace afdep::compile
