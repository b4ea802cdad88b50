#include "runtime/bundle/bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "afdep/abi.h"
#include "runtime/bundle/check_manifest.h"
#include "runtime/bundle/checksum.h"

namespace afdep::bundle {

std::string_view Bundle::file(std::string_view path) const {
  const auto found = files_.find(path);
  AFDEP_CHECK(found != files_.end(), "the bundle has no " + std::string(path));
  return found->second;
}

std::span<const std::byte> Bundle::image(const Kernel& kernel, std::string_view arch) const {
  const auto found = files_.find(cubin_path(arch, kernel.symbol));
  if (found == files_.end()) return {};
  return std::as_bytes(std::span(found->second));
}

std::vector<std::string> Bundle::arches() const {
  std::vector<std::string> common;
  bool first = true;
  for (const Bucket& bucket : manifest_.buckets) {
    for (const Kernel& kernel : bucket.kernels) {
      std::vector<std::string> mine;
      for (const Compiled& compiled : kernel.compiled) mine.push_back(compiled.arch);
      if (first) {
        common = std::move(mine);
      } else {
        std::erase_if(common, [&](const std::string& arch) {
          return std::ranges::find(mine, arch) == mine.end();
        });
      }
      first = false;
    }
  }
  return common;
}

Result<Bundle> make_bundle(Manifest manifest, std::vector<File> files) {
  manifest.format_version = kFormatVersion;
  manifest.afdep_version = AFDEP_VERSION;
  manifest.abi_version = kAbiVersion;
  manifest.files.clear();

  Bundle bundle;
  for (File& file : files) {
    if (bundle.files_.contains(file.path)) {
      return Failure(ErrorCode::kBundle, fmt::format("{} is there twice", file.path));
    }
    bundle.files_.emplace(std::move(file.path), std::move(file.contents));
  }
  std::set<std::string> needed = needed_files(manifest);
  for (const auto& [path, contents] : bundle.files_) {
    if (needed.erase(path) == 0) {
      return Failure(ErrorCode::kBundle, fmt::format("no kernel of the manifest names {}", path));
    }
    manifest.files.push_back(
        {path, static_cast<std::int64_t>(contents.size()), checksum(contents)});
  }
  if (!needed.empty()) {
    return Failure(ErrorCode::kBundle,
                   fmt::format("the manifest names {}, which is missing", *needed.begin()));
  }
  AFDEP_RETURN_IF_FAILED(check(manifest));
  bundle.manifest_ = std::move(manifest);
  return bundle;
}

}  // namespace afdep::bundle
