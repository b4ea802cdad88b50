#include "generator/matrix/state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "generator/compile/cache.h"

namespace afdep::matrix {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFileName = "afdep-matrix.json";
constexpr const char* kLockName = "afdep-matrix.lock";
constexpr int kFormat = 1;

Failure refused(const fs::path& path, std::string message, std::string note) {
  return Failure(Diagnostic{
      ErrorCode::kDirectory, {path.string(), 0, 0}, std::move(message), std::move(note)});
}

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string tool_identity() {
  const std::string program = read_file("/proc/self/exe");
  return fmt::format("{}-{:016x}", AFDEP_VERSION, XXH3_64bits(program.data(), program.size()));
}

Result<fs::path> default_state_folder(const fs::path& matrix_file) {
  const Result<fs::path> cache = compile::default_cache_folder();
  if (!cache) return cache.failure();
  std::error_code error;
  fs::path absolute = fs::weakly_canonical(matrix_file, error);
  if (error) absolute = fs::absolute(matrix_file, error);
  const std::string name = absolute.string();
  return *cache / "matrix" /
         fmt::format("{}-{:016x}", matrix_file.stem().string(),
                     XXH3_64bits(name.data(), name.size()));
}

Result<State> State::open(const fs::path& folder, const std::string& tool, bool fresh) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error || !fs::is_directory(folder)) {
    return refused(folder,
                   fmt::format("cannot make the folder for the matrix's state: {}",
                               error ? error.message() : "Not a directory"),
                   "name another with --resume DIR");
  }
  State state;
  state.folder_ = folder;
  state.tool_ = tool;
  const fs::path lock = folder / kLockName;
  state.lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (state.lock_ < 0) {
    return refused(folder,
                   fmt::format("cannot keep the matrix's state here: {}", std::strerror(errno)),
                   "name another folder with --resume DIR");
  }
  if (flock(state.lock_, LOCK_EX | LOCK_NB) != 0) {
    return refused(folder, "another run of this matrix goes on",
                   "wait for it, or name another folder with --resume DIR");
  }
  const fs::path file = folder / kFileName;
  if (fresh || !fs::exists(file)) return state;
  try {
    const json parsed = json::parse(read_file(file));
    if (parsed.at("afdep_matrix_state").get<int>() != kFormat ||
        parsed.at("tool").get<std::string>() != tool) {
      return state;  // another build's: none of its results counts
    }
    for (const auto& [key, value] : parsed.at("cells").items()) {
      if (std::optional<CellResult> result = result_from_json(value.get<std::string>())) {
        state.results_[key] = std::move(*result);
      }
    }
  } catch (const json::exception&) {
    return refused(file, "is not the state of a matrix", "remove it, or start over with --fresh");
  }
  return state;
}

State::~State() {
  if (lock_ >= 0) close(lock_);
}

State::State(State&& other) noexcept
    : folder_(std::move(other.folder_)),
      tool_(std::move(other.tool_)),
      lock_(std::exchange(other.lock_, -1)),
      results_(std::move(other.results_)) {}

State& State::operator=(State&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(tool_, other.tool_);
  std::swap(lock_, other.lock_);
  std::swap(results_, other.results_);
  return *this;
}

const CellResult* State::find(const std::string& key) const {
  const auto found = results_.find(key);
  return found == results_.end() ? nullptr : &found->second;
}

Result<void> State::put(const std::string& key, const CellResult& result) {
  results_[key] = result;
  json cells = json::object();
  for (const auto& [each, kept] : results_) cells[each] = to_json(kept);
  const std::string text =
      json{{"afdep_matrix_state", kFormat}, {"tool", tool_}, {"cells", std::move(cells)}}.dump(1) +
      "\n";
  const fs::path file = folder_ / kFileName;
  const fs::path part = file.string() + ".part";  // ours: the folder is locked
  std::FILE* const out = std::fopen(part.c_str(), "wb");
  bool good = out != nullptr;
  if (good) {
    good = std::fwrite(text.data(), 1, text.size(), out) == text.size();
    good = std::fclose(out) == 0 && good;
  }
  if (good && std::rename(part.c_str(), file.c_str()) == 0) return {};
  const int reason = errno;
  std::remove(part.c_str());
  return refused(file, fmt::format("cannot write the matrix's state: {}", std::strerror(reason)),
                 "free space, or name another folder with --resume DIR");
}

}  // namespace afdep::matrix
