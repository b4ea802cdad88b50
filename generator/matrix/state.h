// Results of earlier runs, so that an interrupted matrix goes on where it was.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "generator/matrix/outcome.h"
#include "runtime/support/result.h"

namespace afdep::matrix {

// The version and a hash of the program that runs: results of another build count for nothing.
std::string tool_identity();

// The folder that keeps a matrix's state unless the user names one: below the cache folder, by the
// absolute path of the matrix file. E803 if there is no cache folder.
Result<std::filesystem::path> default_state_folder(const std::filesystem::path& matrix_file);

// The state file of a folder, "afdep-matrix.json", held by one process at a time.
class State {
 public:
  // Makes the folder if need be and reads what it has; `fresh`: forgets it instead. E803 if the
  // folder cannot be used, if another process holds it, or if the file there is none of ours.
  static Result<State> open(const std::filesystem::path& folder, const std::string& tool,
                            bool fresh);
  ~State();
  State(State&& other) noexcept;
  State& operator=(State&& other) noexcept;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  // The result kept under a key; null if there is none.
  [[nodiscard]] const CellResult* find(const std::string& key) const;
  // Keeps a result and replaces the file as a whole. E803 if it cannot be written.
  Result<void> put(const std::string& key, const CellResult& result);

 private:
  State() = default;

  std::filesystem::path folder_;
  std::string tool_;
  int lock_ = -1;
  std::map<std::string, CellResult> results_;
};

}  // namespace afdep::matrix
