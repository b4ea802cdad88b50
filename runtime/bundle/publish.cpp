// Writing a bundle: everything goes into a sibling folder first, and one rename makes it visible.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/manifest_text.h"

namespace afdep::bundle {
namespace {

namespace fs = std::filesystem;

Failure refused(const fs::path& path, std::string message, std::string remedy) {
  return Failure(Diagnostic{
      ErrorCode::kDirectory, {path.string(), 0, 0}, std::move(message), std::move(remedy)});
}

Failure failed(const fs::path& path, std::string_view what, int error) {
  return refused(path, fmt::format("cannot {}: {}", what, std::strerror(error)),
                 error == ENOSPC || error == EDQUOT
                     ? "free space on this file system, or choose another output folder"
                     : "choose an output folder that you may write to");
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags)
      : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  [[nodiscard]] int get() const { return value_; }
  // Zero, or the errno of the close: some file systems report a full disk only here.
  int close() { return ::close(std::exchange(value_, -1)) == 0 ? 0 : errno; }

 private:
  int value_;
};

Result<void> write_file(const fs::path& path, std::string_view contents) {
  Descriptor file(path, O_WRONLY | O_CREAT | O_EXCL);
  if (file.get() < 0) return failed(path, "create", errno);
  while (!contents.empty()) {
    const ssize_t written = ::write(file.get(), contents.data(), contents.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return failed(path, "write", errno);
    }
    contents.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::fsync(file.get()) != 0) return failed(path, "write", errno);
  if (const int error = file.close(); error != 0) return failed(path, "write", error);
  return {};
}

// So that the names in a folder survive a power cut as the files do.
Result<void> sync_folder(const fs::path& path) {
  const Descriptor folder(path, O_RDONLY | O_DIRECTORY);
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return failed(path, "write", errno);
  return {};
}

// Keeps other generators from checking and replacing beside this one: two that write the same
// bundle come one after the other. On a file system without locks they may still refuse each other.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder) : folder_(folder, O_RDONLY | O_DIRECTORY) {
    while (folder_.get() >= 0 && ::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
    }
  }

 private:
  Descriptor folder_;  // closing it unlocks
};

// A folder that is removed again unless it is released; also removes the parents that it had to
// create.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
    if (published_) return;
    // The deepest first, and empty ones only: meanwhile somebody else may have put something there.
    for (const fs::path& parent : created_parents_) {
      if (::rmdir(parent.c_str()) != 0) return;
    }
  }

  // Beside `target`, so that a rename between the two stays within one file system.
  Result<void> create_beside(const fs::path& target) {
    const fs::path parent = target.parent_path();
    AFDEP_RETURN_IF_FAILED(create_parents(parent));
    std::random_device random;
    for (int attempt = 0; attempt < 100; ++attempt) {
      const fs::path path =
          parent / fmt::format(".{}.{:08x}", target.filename().string(), random());
      if (::mkdir(path.c_str(), 0777) == 0) {
        path_ = path;
        return {};
      }
      if (errno != EEXIST) return failed(parent, "create a folder", errno);
    }
    return failed(parent, "create a folder", EEXIST);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void publish() { published_ = true; }

 private:
  Result<void> create_parents(const fs::path& parent) {
    std::error_code error;
    for (fs::path at = parent; !fs::exists(at, error) && at != at.parent_path();
         at = at.parent_path()) {
      created_parents_.push_back(at);
    }
    if (created_parents_.empty()) return {};
    fs::create_directories(parent, error);
    if (error) return failed(parent, "create the folder", error.value());
    return {};
  }

  fs::path path_;
  std::vector<fs::path> created_parents_;  // that were not there before, the deepest first
  bool published_ = false;
};

Result<void> write_all(const fs::path& folder, const Bundle& bundle) {
  std::set<fs::path> folders{folder};
  for (const auto& [path, contents] : bundle.files()) {
    const fs::path file = folder / path;
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    if (error) return failed(file.parent_path(), "create the folder", error.value());
    for (fs::path at = file.parent_path(); at != folder; at = at.parent_path()) folders.insert(at);
    AFDEP_RETURN_IF_FAILED(write_file(file, contents));
  }
  AFDEP_RETURN_IF_FAILED(write_file(folder / kManifestPath, print(bundle.manifest())));
  for (const fs::path& path : folders) AFDEP_RETURN_IF_FAILED(sync_folder(path));
  return {};
}

// Every file of the bundle in `directory`; nothing if that is no bundle. Any version's manifest
// will do.
std::optional<std::set<std::string>> read_listing(const fs::path& directory) {
  std::ifstream in(directory / kManifestPath, std::ios::binary);
  std::optional<std::set<std::string>> listed =
      listed_files({std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
  if (listed) listed->insert(std::string(kManifestPath));
  return listed;
}

// Whether `target` is there. Fails unless it may be replaced: it is empty, or holds a bundle and
// nothing else.
Result<bool> is_there(const fs::path& target) {
  constexpr const char* kRemedy = "choose another output folder, or remove this one yourself";
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (!fs::is_directory(status)) {
    return refused(target, "exists and is not a folder", "choose another output folder");
  }
  std::set<fs::path> entries;
  for (fs::recursive_directory_iterator it(target, error), end; !error && it != end;
       it.increment(error)) {
    entries.insert(it->path());
  }
  if (error) return failed(target, "list", error.value());
  if (entries.empty()) return true;

  const std::optional<std::set<std::string>> listed = read_listing(target);
  if (!listed) {
    return refused(target,
                   fmt::format("exists and is no readable bundle: it holds {}",
                               entries.begin()->lexically_relative(target).string()),
                   kRemedy);
  }
  for (const fs::path& entry : entries) {
    const std::string name = entry.lexically_relative(target).generic_string();
    // Folders of a bundle are those that lead to its files.
    const auto after = listed->lower_bound(name + "/");
    const bool folder = fs::is_directory(fs::symlink_status(entry, error));
    const bool expected =
        folder ? after != listed->end() && after->starts_with(name + "/") : listed->contains(name);
    if (!expected) {
      return refused(target, fmt::format("holds {}, which is no part of the bundle there", name),
                     kRemedy);
    }
  }
  return true;
}

// `target` must not be there; if somebody made it meanwhile, it stays.
Result<void> rename_to(const fs::path& folder, const fs::path& target) {
  if (::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_NOREPLACE) == 0) {
    return {};
  }
  // Not every file system knows the flag; a plain rename replaces an empty folder only.
  if (errno != EINVAL || ::rename(folder.c_str(), target.c_str()) != 0) {
    return failed(target, "create", errno);
  }
  return {};
}

// Swaps the two; what was there ends up as `folder`.
Result<void> exchange(const fs::path& folder, const fs::path& target) {
  if (::renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) {
    return {};
  }
  if (errno != EINVAL) return failed(target, "replace", errno);
  // Without the flag, two renames: for a moment there is no bundle, but never half of one.
  const fs::path aside = folder.string() + ".old";
  if (::rename(target.c_str(), aside.c_str()) != 0) return failed(target, "replace", errno);
  if (::rename(folder.c_str(), target.c_str()) != 0) {
    const int error = errno;
    ::rename(aside.c_str(), target.c_str());
    return failed(target, "replace", error);
  }
  if (::rename(aside.c_str(), folder.c_str()) != 0) return failed(aside, "remove", errno);
  return {};
}

}  // namespace

Result<void> write_bundle(const fs::path& directory, const Bundle& bundle) {
  std::error_code error;
  fs::path target = fs::absolute(directory, error).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  if (const fs::path real = fs::canonical(target, error); !error) target = real;

  {
    // Before anything is written; looked at again before it is replaced.
    const FolderLock lock(target.parent_path());
    const Result<bool> replaceable = is_there(target);
    if (!replaceable.ok()) return replaceable.failure();
  }

  TemporaryFolder folder;
  AFDEP_RETURN_IF_FAILED(folder.create_beside(target));
  AFDEP_RETURN_IF_FAILED(write_all(folder.path(), bundle));

  {
    const FolderLock lock(target.parent_path());
    const Result<bool> replaces = is_there(target);
    if (!replaces.ok()) return replaces.failure();
    AFDEP_RETURN_IF_FAILED(*replaces ? exchange(folder.path(), target)
                                     : rename_to(folder.path(), target));
  }
  folder.publish();
  return sync_folder(target.parent_path());
}

}  // namespace afdep::bundle
