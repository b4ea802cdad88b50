#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "cli/deferred_signals.h"

namespace afdep::cli {
namespace {

Failure cannot_write(const std::filesystem::path& path, int error_number) {
  return Failure(Diagnostic{ErrorCode::kDirectory,
                            {path.string(), 0, 0},
                            fmt::format("cannot write the file: {}", std::strerror(error_number)),
                            "name a file in a folder that exists, is writable and has space"});
}

// A device, a pipe: what is there takes the text and must not be replaced by a file.
Result<void> write_into(const std::filesystem::path& path, std::string_view text) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return cannot_write(path, errno);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int write_error = errno;
  if (std::fclose(file) != 0 && written) return cannot_write(path, errno);
  if (!written) return cannot_write(path, write_error);
  return {};
}

}  // namespace

Result<void> write_file(const std::filesystem::path& name, std::string_view text) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(name, error);
  if (std::filesystem::is_directory(status)) return cannot_write(name, EISDIR);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return write_into(name, text);
  }
  // A link stays one: the file that it leads to is replaced.
  std::filesystem::path path = std::filesystem::canonical(name, error);
  if (error) path = name;
  const std::filesystem::path part = path.string() + fmt::format(".part-{}", getpid());
  const DeferredSignals deferred;
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
