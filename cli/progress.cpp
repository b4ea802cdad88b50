#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cli/console.h"

namespace afdep::cli {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::seconds kLineEvery{10};
constexpr int kBarColumns = 30;

}  // namespace

Progress::Progress(std::string what)
    : what_(std::move(what)),
      terminal_(isatty(STDERR_FILENO) == 1),
      next_(std::chrono::steady_clock::now() + (terminal_ ? kPatience : kLineEvery)) {}

Progress::~Progress() {
  if (drawn_) print_error("\r\x1b[K");
}

void Progress::show(int done, int total) {
  if (total <= 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  if (!terminal_) {
    print_error(fmt::format("{} {}/{}\n", what_, done, total));
    next_ = now + kLineEvery;
    return;
  }
  const int filled = std::clamp(done * kBarColumns / total, 0, kBarColumns);
  print_error(fmt::format("\r{} [{:<{}}] {}/{}", what_,
                          std::string(static_cast<std::size_t>(filled), '#'), kBarColumns, done,
                          total));
  drawn_ = true;
}

}  // namespace afdep::cli
