// A bundle: the manifest and the files that it lists, in memory or as a directory:
//   manifest.json  plan.txt  src/<file>.cu  bin/<arch>/<symbol>.cubin
// Format: docs/bundle-format.md.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/bundle/manifest.h"
#include "runtime/support/result.h"

namespace afdep::bundle {

struct File {
  std::string path;      // relative to the bundle, with '/'
  std::string contents;  // text or bytes
};

// Immutable. The views that it returns live as long as it does and survive a move.
class Bundle {
 public:
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] std::string_view plan_text() const { return file(kPlanPath); }
  [[nodiscard]] std::string_view source(const Kernel& kernel) const { return file(kernel.source); }
  // The cubin for `arch`; empty if the bundle holds none.
  [[nodiscard]] std::span<const std::byte> image(const Kernel& kernel, std::string_view arch) const;
  // Archs that every kernel is compiled for, ascending.
  [[nodiscard]] std::vector<std::string> arches() const;
  // By path; the manifest itself is not among them.
  [[nodiscard]] const std::map<std::string, std::string, std::less<>>& files() const {
    return files_;
  }

 private:
  friend Result<Bundle> make_bundle(Manifest manifest, std::vector<File> files);
  friend Result<Bundle> read_bundle(const std::filesystem::path& directory);

  // Precondition: the bundle has this file.
  [[nodiscard]] std::string_view file(std::string_view path) const;

  Manifest manifest_;
  std::map<std::string, std::string, std::less<>> files_;
};

// Joins a plan's manifest with its files and fills manifest.files, format_version, afdep_version
// and abi_version. Fails with kBundle if the manifest contradicts itself, or if `files` is not
// exactly what it names.
Result<Bundle> make_bundle(Manifest manifest, std::vector<File> files);

// Publishes the bundle as `directory`: all of it, or nothing is changed. An existing directory is
// replaced if it is empty or holds a bundle and nothing else; otherwise fails with kDirectory,
// naming what is in the way, as for every failure to write. Equal bundles give equal bytes.
Result<void> write_bundle(const std::filesystem::path& directory, const Bundle& bundle);

// Fails with kVersionSkew if another version wrote it, with kBundle (naming file and field) if it
// is no bundle or damaged.
Result<Bundle> read_bundle(const std::filesystem::path& directory);

}  // namespace afdep::bundle
