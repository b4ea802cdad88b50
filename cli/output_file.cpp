#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace afdep::cli {
namespace {

Failure cannot_write(const std::filesystem::path& path, int error_number) {
  return Failure(Diagnostic{ErrorCode::kDirectory,
                            {path.string(), 0, 0},
                            fmt::format("cannot write the file: {}", std::strerror(error_number)),
                            "name a file in a folder that exists, is writable and has space"});
}

}  // namespace

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  if (std::filesystem::is_directory(path)) return cannot_write(path, EISDIR);
  const std::filesystem::path part = path.string() + fmt::format(".part-{}", getpid());
  std::FILE* const file = std::fopen(part.c_str(), "wb");
  if (file == nullptr) return cannot_write(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() &&
                       std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const int error_number = errno;
  std::fclose(file);
  if (!written || std::rename(part.c_str(), path.c_str()) != 0) {
    const int reason = written ? errno : error_number;
    std::remove(part.c_str());
    return cannot_write(path, reason);
  }
  return {};
}

}  // namespace afdep::cli
