#include "tests/unit/cli/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace afdep::testing {
namespace {

// An unnamed file: no pipe that could fill up while nobody reads.
std::FILE* unnamed_file(const std::string& contents) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) throw std::runtime_error("no temporary file");
  std::fwrite(contents.data(), 1, contents.size(), file);
  std::fflush(file);
  std::rewind(file);
  return file;
}

std::string contents_of(std::FILE* file) {
  std::rewind(file);
  std::string text;
  std::array<char, 4096> block;
  while (const std::size_t got = std::fread(block.data(), 1, block.size(), file)) {
    text.append(block.data(), got);
  }
  std::fclose(file);
  return text;
}

}  // namespace

Finished run(const std::vector<std::string>& command, const ProcessOptions& options) {
  std::FILE* const in = unnamed_file(options.input);
  std::FILE* const out = unnamed_file("");
  std::FILE* const err = unnamed_file("");
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);

  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    dup2(fileno(in), STDIN_FILENO);
    dup2(fileno(out), STDOUT_FILENO);
    dup2(fileno(err), STDERR_FILENO);
    if (!options.out_path.empty()) {
      const int file = open(options.out_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0) _exit(126);
      dup2(file, STDOUT_FILENO);
    }
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    if (options.file_limit_bytes >= 0) {
      const auto bytes = static_cast<rlim_t>(options.file_limit_bytes);
      const rlimit limit{bytes, bytes};
      setrlimit(RLIMIT_FSIZE, &limit);
      std::signal(SIGXFSZ, SIG_IGN);  // a write over the limit then fails like one to a full disk
    }
    for (const auto& [name, value] : options.variables) setenv(name.c_str(), value.c_str(), 1);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::fclose(in);
  Finished finished;
  finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  finished.out = contents_of(out);
  finished.err = contents_of(err);
  return finished;
}

}  // namespace afdep::testing
