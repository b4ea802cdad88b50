#include "cli/matrix_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "cli/console.h"

namespace afdep::cli {
namespace {

constexpr int kBarColumns = 30;

}  // namespace

std::string duration_text(double seconds) {
  if (seconds < 90) return fmt::format("{} s", static_cast<int>(std::ceil(seconds)));
  const int minutes = static_cast<int>(std::ceil(seconds / 60));
  if (minutes < 90) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

MatrixProgress::MatrixProgress()
    : terminal_(isatty(STDERR_FILENO) == 1), start_(std::chrono::steady_clock::now()) {}

MatrixProgress::~MatrixProgress() {
  if (drawn_) print_error("\r\x1b[K");
}

void MatrixProgress::show(const matrix::RunCell& run, int done, int total) {
  const matrix::CellResult& result = run.result;
  const bool ran = result.seconds > 0 && !result.resumed;
  ran_ += ran ? 1 : 0;
  bad_ += is_good(result.outcome) ? 0 : 1;
  if (!terminal_) {
    // What took no time stands in the table; a log of it would say nothing.
    if (!ran && is_good(result.outcome)) return;
    const std::string message = message_of(result);
    print_error(fmt::format("[{:>{}}/{}] {:<8} {:>6.1f} s  {}{}{}{}\n", done,
                            fmt::formatted_size("{}", total), total, to_string(result.outcome),
                            result.seconds, run.label, message.empty() ? "" : ": ", message,
                            time_left(done, total)));
    return;
  }
  const int filled = std::clamp(done * kBarColumns / std::max(total, 1), 0, kBarColumns);
  print_error(fmt::format("\r\x1b[Kmatrix [{:<{}}] {}/{}{}{}",
                          std::string(static_cast<std::size_t>(filled), '#'), kBarColumns, done,
                          total, bad_ == 0 ? "" : fmt::format(", {} bad", bad_),
                          time_left(done, total)));
  drawn_ = true;
}

std::string MatrixProgress::time_left(int done, int total) const {
  if (ran_ < 3 || done == total) return {};
  const double passed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  return fmt::format("; about {} left", duration_text(passed / ran_ * (total - done)));
}

}  // namespace afdep::cli
