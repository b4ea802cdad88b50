#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <set>
#include <system_error>
#include <utility>

#include "runtime/bundle/bundle.h"
#include "runtime/bundle/check_manifest.h"
#include "runtime/bundle/checksum.h"
#include "runtime/bundle/manifest_text.h"

namespace afdep::bundle {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMaxManifestBytes = 64 << 20;

Failure damaged(const fs::path& file, std::string message) {
  return Failure(Diagnostic{ErrorCode::kBundle,
                            {file.string(), 0, 0},
                            std::move(message),
                            "copy the bundle again, or generate it again"});
}

Result<std::string> read_file(const fs::path& path, std::uintmax_t expected_bytes) {
  std::ifstream in(path, std::ios::binary);
  std::string contents(expected_bytes, '\0');
  in.read(contents.data(), static_cast<std::streamsize>(contents.size()));
  if (!in) return damaged(path, "cannot be read");
  return contents;
}

// What manifest.json says that a bundle's file is.
Result<std::string> read_entry(const fs::path& directory, const FileEntry& entry) {
  const fs::path path = directory / entry.path;
  std::error_code error;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) {
    return damaged(path, fmt::format("is missing; {} lists it", kManifestPath));
  }
  const std::uintmax_t bytes = fs::file_size(path, error);
  if (error || bytes != static_cast<std::uintmax_t>(entry.bytes)) {
    return damaged(path, fmt::format("has {} bytes; {} says {}", error ? 0 : bytes, kManifestPath,
                                     entry.bytes));
  }
  Result<std::string> contents = read_file(path, bytes);
  if (!contents.ok()) return contents;
  if (const std::string found = checksum(*contents); found != entry.checksum) {
    return damaged(path,
                   fmt::format("checksum is {}; {} says {}", found, kManifestPath, entry.checksum));
  }
  return contents;
}

// Empty, or the first file below `directory` that the manifest does not list.
fs::path find_unlisted(const fs::path& directory, const Manifest& manifest) {
  std::set<std::string> listed{std::string(kManifestPath)};
  for (const FileEntry& entry : manifest.files) listed.insert(entry.path);
  std::set<fs::path> unlisted;
  std::error_code error;
  for (fs::recursive_directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    if (it->is_directory(error) && !it->is_symlink(error)) continue;
    if (!listed.contains(it->path().lexically_relative(directory).generic_string())) {
      unlisted.insert(it->path());
    }
  }
  return unlisted.empty() ? fs::path() : *unlisted.begin();
}

}  // namespace

Result<Bundle> read_bundle(const fs::path& directory) {
  const fs::path manifest_path = directory / kManifestPath;
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return Failure(
        Diagnostic{ErrorCode::kBundle,
                   {directory.string(), 0, 0},
                   fs::exists(directory, error) ? "is not a directory" : "does not exist",
                   "name the folder that afdep-gen SPEC -o DIR wrote"});
  }
  if (!fs::is_regular_file(manifest_path, error)) {
    return damaged(manifest_path, "is missing: the folder is no bundle");
  }
  const std::uintmax_t bytes = fs::file_size(manifest_path, error);
  if (error || bytes > kMaxManifestBytes) {
    return damaged(manifest_path, "is too large for a manifest, or cannot be read");
  }
  Result<std::string> text = read_file(manifest_path, bytes);
  if (!text.ok()) return text.failure();
  Result<Manifest> manifest = parse_manifest(*text, manifest_path.string());
  if (!manifest.ok()) return manifest.failure();

  Bundle bundle;
  std::set<std::string> needed = needed_files(*manifest);
  for (const FileEntry& entry : manifest->files) {
    Result<std::string> contents = read_entry(directory, entry);
    if (!contents.ok()) return contents.failure();
    needed.erase(entry.path);
    bundle.files_.emplace(entry.path, std::move(*contents));
  }
  if (!needed.empty()) {
    return damaged(manifest_path, fmt::format("files: {} is missing", *needed.begin()));
  }
  if (const fs::path extra = find_unlisted(directory, *manifest); !extra.empty()) {
    return damaged(extra, fmt::format("is not listed in {}", kManifestPath));
  }
  bundle.manifest_ = std::move(*manifest);
  return bundle;
}

}  // namespace afdep::bundle
