#include "generator/matrix/pool.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <utility>

#include "runtime/support/check.h"

namespace afdep::matrix {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kOutputTail = 4000;  // bytes kept of what a job wrote
constexpr int kInternal = 70;

// Memory that a child writes and its parent reads afterwards, however the child ended.
class SharedText {
 public:
  explicit SharedText(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {
    AFDEP_CHECK(fd_ >= 0, fmt::format("memfd_create: {}", std::strerror(errno)));
  }
  ~SharedText() {
    if (fd_ >= 0) close(fd_);
  }
  SharedText(SharedText&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  SharedText& operator=(SharedText&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;

  [[nodiscard]] int fd() const { return fd_; }

  void append(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t wrote = write(fd_, text.data(), text.size());
      if (wrote < 0) {
        if (errno == EINTR) continue;
        _exit(kInternal);  // only a child writes; without memory it has no result
      }
      text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }

  [[nodiscard]] std::string read_all() const {
    std::string text(static_cast<std::size_t>(std::max<off_t>(lseek(fd_, 0, SEEK_END), 0)), '\0');
    std::size_t got = 0;
    while (got < text.size()) {
      const ssize_t n = pread(fd_, text.data() + got, text.size() - got, static_cast<off_t>(got));
      if (n <= 0) break;
      got += static_cast<std::size_t>(n);
    }
    text.resize(got);
    return text;
  }

 private:
  int fd_;
};

struct Job {
  int index = 0;
  pid_t pid = -1;
  SharedText stages{"afdep-stages"};  // one a line
  SharedText result{"afdep-result"};
  SharedText output{"afdep-output"};
  Clock::time_point start;
  Clock::time_point deadline;
  bool timed_out = false;
};

// Blocks the signals that the pool waits for, and puts the old mask back.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigemptyset(&set_);
    for (const int signal : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set_, signal);
    sigprocmask(SIG_BLOCK, &set_, &old_);
  }
  ~BlockedSignals() { sigprocmask(SIG_SETMASK, &old_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  // The next of them, or 0 after `patience`.
  [[nodiscard]] int wait(Clock::duration patience) const {
    const auto ns = std::max<std::int64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(patience).count(), 0);
    timespec time{};
    time.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    time.tv_nsec = static_cast<long>(ns % 1'000'000'000);
    const int signal = sigtimedwait(&set_, nullptr, &time);
    return signal > 0 ? signal : 0;
  }
  void restore_in_child() const { sigprocmask(SIG_SETMASK, &old_, nullptr); }

 private:
  sigset_t set_{};
  sigset_t old_{};
};

[[noreturn]] void run_child(const Job& job, pid_t parent, const BlockedSignals& signals,
                            const std::function<std::string(int, const TellStage&)>& body) {
  // A Ctrl-C reaches the whole group; the parent decides.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kInternal);  // it died before the line above
  signals.restore_in_child();
  dup2(job.output.fd(), STDOUT_FILENO);
  dup2(job.output.fd(), STDERR_FILENO);
  const TellStage tell = [&job](std::string_view stage) {
    job.stages.append(fmt::format("{}\n", stage));
  };
  try {
    job.result.append(body(job.index, tell));
    _exit(0);
  } catch (const std::exception& error) {
    job.output.append(fmt::format("{}\n", error.what()));
  } catch (...) {
    job.output.append("unknown exception\n");
  }
  _exit(kInternal);
}

std::string last_line(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t end = text.size() - 1;  // each line ends in a newline
  const std::size_t begin = text.rfind('\n', end == 0 ? 0 : end - 1);
  return begin == std::string::npos || begin == end ? text.substr(0, end)
                                                    : text.substr(begin + 1, end - begin - 1);
}

JobEnd end_of(const Job& job, int status) {
  JobEnd end;
  end.seconds = std::chrono::duration<double>(Clock::now() - job.start).count();
  end.stage = last_line(job.stages.read_all());
  end.output = job.output.read_all();
  if (end.output.size() > kOutputTail) end.output.erase(0, end.output.size() - kOutputTail);
  if (job.timed_out) {
    end.how = Ended::kTimeout;
  } else if (WIFSIGNALED(status)) {
    end.how = Ended::kSignal;
    end.number = WTERMSIG(status);
  } else if (WEXITSTATUS(status) != 0) {
    end.how = Ended::kExit;
    end.number = WEXITSTATUS(status);
  } else {
    end.result = job.result.read_all();
  }
  return end;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

class Pool {
 public:
  Pool(int count, const PoolOptions& options,
       const std::function<std::string(int, const TellStage&)>& body,
       const std::function<void(int, JobEnd)>& on_end)
      : count_(count), options_(options), body_(body), on_end_(on_end) {}
  // Only with running jobs after an exception of on_end.
  ~Pool() { kill_all(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  bool run() {
    while (next_ < count_ || !running_.empty()) {
      while (next_ < count_ && static_cast<int>(running_.size()) < std::max(options_.jobs, 1)) {
        start(next_++);
      }
      const int signal = signals_.wait(patience());
      if (signal == SIGINT || signal == SIGTERM) {
        kill_all();
        return false;
      }
      kill_late();
      reap();
    }
    return true;
  }

 private:
  void start(int index) {
    Job job;
    job.index = index;
    job.start = Clock::now();
    job.deadline = job.start + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(options_.limit_seconds));
    const pid_t parent = getpid();
    const pid_t pid = fork();
    AFDEP_CHECK(pid >= 0, fmt::format("fork: {}", std::strerror(errno)));
    if (pid == 0) run_child(job, parent, signals_, body_);
    job.pid = pid;
    running_.push_back(std::move(job));
  }

  // Until the first deadline; a second at most, in case a signal was merged with another.
  [[nodiscard]] Clock::duration patience() const {
    Clock::duration wait = std::chrono::seconds(1);
    for (const Job& job : running_) wait = std::min(wait, job.deadline - Clock::now());
    return wait;
  }

  void kill_late() {
    for (Job& job : running_) {
      if (job.timed_out || Clock::now() < job.deadline) continue;
      job.timed_out = true;
      job.deadline = Clock::time_point::max();
      kill(job.pid, SIGKILL);
    }
  }

  void reap() {
    for (std::size_t i = 0; i < running_.size();) {
      int status = 0;
      rusage usage{};
      if (wait4(running_[i].pid, &status, WNOHANG, &usage) != running_[i].pid) {
        ++i;
        continue;
      }
      const Job job = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      JobEnd end = end_of(job, status);
      end.cpu_seconds = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
      on_end_(job.index, std::move(end));
    }
  }

  void kill_all() {
    for (const Job& job : running_) kill(job.pid, SIGKILL);
    for (const Job& job : running_) waitpid(job.pid, nullptr, 0);
    running_.clear();
  }

  int count_;
  const PoolOptions& options_;
  const std::function<std::string(int, const TellStage&)>& body_;
  const std::function<void(int, JobEnd)>& on_end_;
  BlockedSignals signals_;
  std::vector<Job> running_;
  int next_ = 0;
};

}  // namespace

bool run_pool(int count, const PoolOptions& options,
              const std::function<std::string(int, const TellStage&)>& body,
              const std::function<void(int, JobEnd)>& on_end) {
  return Pool(count, options, body, on_end).run();
}

}  // namespace afdep::matrix
