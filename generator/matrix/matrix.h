// A matrix file: a base spec and axes of values that expand into many specs. Source:
// docs/matrix.md.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "generator/spec/overrides.h"
#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::matrix {

inline constexpr int kMaxCells = 512;

// One choice of an axis: a value for each of its keys.
struct AxisValue {
  std::vector<std::string> texts;  // YAML, of each key
  std::vector<Place> places;       // where each is written
};

// Keys that vary together; most axes have one.
struct Axis {
  std::vector<std::string> keys;  // paths: "kernel.protocol"
  std::vector<AxisValue> values;
  Place place;
};

// Cells that are illegal on purpose.
struct Expectation {
  std::vector<std::pair<std::string, std::string>> where;  // key of an axis -> YAML of its value
  ErrorCode refused = ErrorCode::kMatrixFile;
  Place place;
};

struct Matrix {
  std::string file;       // as diagnostics name it
  std::string base_text;  // the base spec, each character where its file has it
  std::string base_file;  // the file that places in base_text are of
  std::vector<Axis> axes;
  std::vector<Expectation> expectations;
  // Of each axis key, in the order of the axes: what the base gives, as YAML; nothing if it does
  // not.
  std::vector<std::optional<std::string>> base_values;
};

// One spec of the matrix.
struct Cell {
  int number = 0;                                       // from 1, in the order of expansion
  std::vector<int> choices;                             // of each axis, an index of its values
  std::vector<spec::Override> overrides;                // of each axis key
  std::vector<Place> places;                            // of each override
  std::optional<ErrorCode> must_refuse = std::nullopt;  // by an expectation
};

// Reads a matrix file, as strictly as a spec. What is wrong with the file itself is E009 with its
// place, an axis key that does not exist E001 with the nearest key, and a mistake of form in the
// base the spec's own code, all of the file together. base_file is relative to the folder of
// `file`.
Result<Matrix> read(std::string_view text, const std::string& file);

// read() of a file; E009 if it cannot be read.
Result<Matrix> load(const std::filesystem::path& path);

// The cross product, first axis slowest. Never more than kMaxCells: read() refuses them.
std::vector<Cell> expand(const Matrix& matrix);

// True if the cell has every value that the expectation names.
bool matches(const Expectation& expectation, const Cell& cell);

// The cell's spec, or all of its errors; those of an axis value have its place in the matrix file.
Result<spec::Spec> cell_spec(const Matrix& matrix, const Cell& cell);

// How people name a cell: "ratio=2A2F top_k=8"; a key is cut to its last word where that is unique.
std::string label(const Matrix& matrix, const Cell& cell);

// The short name of each axis key, in the order of the axes.
std::vector<std::string> short_keys(const Matrix& matrix);

}  // namespace afdep::matrix
