#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"

namespace afdep::cli {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr int kBarColumns = 30;

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_) print_error("\r\x1b[K");
}

void Progress::show(int done, int total) {
  if (!terminal_ || total <= 0) return;
  if (std::chrono::steady_clock::now() - start_ < kPatience) return;
  const int filled = std::clamp(done * kBarColumns / total, 0, kBarColumns);
  print_error(fmt::format("\r{} [{:<{}}] {}/{}", what_,
                          std::string(static_cast<std::size_t>(filled), '#'), kBarColumns, done,
                          total));
  drawn_ = true;
}

}  // namespace afdep::cli
