#include "generator/compile/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <xxhash.h>

#include "generator/compile/cache_entry.h"

namespace afdep::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRemedy =
    "make the folder writable and free some space, or choose another with cache.dir or "
    "XDG_CACHE_HOME";

Failure folder_failure(const fs::path& path, std::string_view what, int error) {
  return Failure(
      ErrorCode::kDirectory,
      fmt::format("cache {}: {}: {}", path.string(), what, std::generic_category().message(error)),
      std::string(kRemedy));
}

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

// Nothing if there is no such file or it cannot be read: either is a miss.
std::optional<std::vector<std::byte>> read_file(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (file.get() < 0 || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return std::nullopt;
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t got = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

// 0 or errno.
int write_whole(const fs::path& path, std::span<const std::byte> bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return errno;
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t put = ::write(file.get(), bytes.data() + at, bytes.size() - at);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno;
    at += static_cast<std::size_t>(put);
  }
  return 0;
}

// Publishes the bytes under `path`: whole or not at all for a reader in another process. What a
// power cut leaves of an entry fails its checksum, and is compiled anew: no need to wait for the
// disk.
Result<void> publish(const fs::path& path, std::span<const std::byte> bytes) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return folder_failure(path.parent_path(), "cannot be made", error.value());
  // Unique among the processes of one host by the process id, inside one by the count. A file of a
  // process that died under the same name is in the way at most once.
  static std::atomic<unsigned> count{0};
  const fs::path temporary = fmt::format("{}.{}.{}.tmp", path.string(), ::getpid(), ++count);
  int failed = write_whole(temporary, bytes);
  if (failed == EEXIST) {
    fs::remove(temporary, error);
    failed = write_whole(temporary, bytes);
  }
  if (failed == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) failed = errno;
  if (failed != 0) {
    fs::remove(temporary, error);
    return folder_failure(path, "cannot be written", failed);
  }
  return {};
}

// The identity is looked up once for a library file that has not changed since.
Result<std::string> identity_of(const NvrtcSearch& search) {
  auto file = locate_nvrtc(search);
  AFDEP_RETURN_IF_FAILED(file);
  struct Known {
    fs::path file;
    dev_t device;
    ino_t inode;
    timespec changed;
    std::string identity;
  };
  static std::mutex mutex;
  static std::vector<Known> known;
  struct stat status{};
  if (::stat(file->c_str(), &status) != 0) return nvrtc_identity(*file);
  const std::scoped_lock lock(mutex);
  for (const Known& entry : known) {
    if (entry.file == *file && entry.device == status.st_dev && entry.inode == status.st_ino &&
        entry.changed.tv_sec == status.st_ctim.tv_sec &&
        entry.changed.tv_nsec == status.st_ctim.tv_nsec) {
      return entry.identity;
    }
  }
  auto identity = nvrtc_identity(*file);
  if (identity.ok()) {
    known.push_back({*file, status.st_dev, status.st_ino, status.st_ctim, *identity});
  }
  return identity;
}

fs::path entry_path(const fs::path& compiler_folder, const std::string& key) {
  return compiler_folder / (key + ".cubin");
}

std::optional<CompiledModule> find_entry(const fs::path& path, const std::string& key) {
  const auto bytes = read_file(path);
  return bytes ? decode_entry(key, *bytes) : std::nullopt;
}

}  // namespace

Result<fs::path> default_cache_folder() {
  for (const auto& [variable, below] :
       {std::pair{"XDG_CACHE_HOME", "afdep"}, std::pair{"HOME", ".cache/afdep"}}) {
    const char* value = std::getenv(variable);
    // The XDG base directory specification has relative paths ignored.
    if (value != nullptr && value[0] == '/') return fs::path(value) / below;
  }
  return Failure(ErrorCode::kDirectory,
                 "no cache folder: neither XDG_CACHE_HOME nor HOME is an absolute path",
                 "set one of them, or cache.dir in the spec");
}

std::string request_key(const KernelSource& source, std::string_view arch,
                        const CompileOptions& options) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  // Each text goes in behind its length, so that no two requests run together into one.
  const auto add = [&](std::string_view text) {
    const std::uint64_t size = text.size();
    XXH3_128bits_update(state.get(), &size, sizeof(size));
    XXH3_128bits_update(state.get(), text.data(), text.size());
  };
  add(source.symbol);
  add(source.file_name);
  add(source.text);
  add(arch);
  const std::vector<std::string> flags = nvrtc_options(arch);
  add(fmt::format("{} options, {} headers", flags.size(), options.headers.size()));
  for (const std::string& flag : flags) add(flag);
  for (const Header& header : options.headers) {
    add(header.name);
    add(header.text);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

ModuleCache::ModuleCache(fs::path folder, CacheMode mode, NvrtcSearch search, Compile compile_miss)
    : folder_(std::move(folder)),
      mode_(mode),
      search_(std::move(search)),
      compile_miss_(std::move(compile_miss)) {}

Result<CompiledModule> ModuleCache::get(const KernelSource& source, std::string_view arch,
                                        const CompileOptions& options) {
  const std::string key = request_key(source, arch, options);
  if (mode_ == CacheMode::kAot) return get_compiled(source, arch, key);

  auto compiler = identity_of(search_);
  AFDEP_RETURN_IF_FAILED(compiler);
  const fs::path path = entry_path(folder_ / *compiler, key);
  if (auto stored = find_entry(path, key)) return *std::move(stored);
  auto module = compile_miss_(source, arch, options);
  AFDEP_RETURN_IF_FAILED(module);
  AFDEP_RETURN_IF_FAILED(publish(path, encode_entry(key, *module)));
  return module;
}

// Any compiler's module will do: the machine that filled the cache chose it. The order is fixed, so
// the choice is too.
Result<CompiledModule> ModuleCache::get_compiled(const KernelSource& source, std::string_view arch,
                                                 const std::string& key) const {
  std::vector<fs::path> compilers;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->is_directory(ignored)) compilers.push_back(at->path());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return folder_failure(folder_, "cannot be read", error.value());
  }
  std::ranges::sort(compilers);
  for (const fs::path& compiler : compilers) {
    if (auto stored = find_entry(entry_path(compiler, key), key)) return *std::move(stored);
  }
  return Failure(ErrorCode::kCacheMiss,
                 fmt::format("{} for {} is not in the ahead-of-time cache {} (key {})",
                             source.symbol, arch, folder_.string(), key),
                 "fill the cache with the same spec, version and arch on a build machine, or set "
                 "cache.mode: jit");
}

}  // namespace afdep::compile
