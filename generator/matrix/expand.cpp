// Cells of a matrix.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "generator/matrix/matrix.h"
#include "generator/spec/sink.h"

namespace afdep::matrix {
namespace {

Cell make_cell(const Matrix& matrix, int number, const std::vector<int>& choices) {
  Cell cell;
  cell.number = number;
  cell.choices = choices;
  for (std::size_t i = 0; i < matrix.axes.size(); ++i) {
    const Axis& axis = matrix.axes[i];
    const AxisValue& value = axis.values[static_cast<std::size_t>(choices[i])];
    for (std::size_t k = 0; k < axis.keys.size(); ++k) {
      cell.overrides.push_back({axis.keys[k], value.texts[k]});
      cell.places.push_back(value.places[k]);
    }
  }
  for (const Expectation& expectation : matrix.expectations) {
    if (!cell.must_refuse && matches(expectation, cell)) cell.must_refuse = expectation.refused;
  }
  return cell;
}

}  // namespace

bool matches(const Expectation& expectation, const Cell& cell) {
  return std::ranges::all_of(expectation.where, [&](const auto& condition) {
    return std::ranges::any_of(cell.overrides, [&](const spec::Override& change) {
      return change.path == condition.first && change.value == condition.second;
    });
  });
}

std::vector<Cell> expand(const Matrix& matrix) {
  std::vector<Cell> cells;
  std::vector<int> choices(matrix.axes.size(), 0);
  while (true) {
    cells.push_back(make_cell(matrix, static_cast<int>(cells.size()) + 1, choices));
    // Counts up with the last axis fastest.
    std::size_t i = choices.size();
    while (i > 0 && choices[i - 1] + 1 == static_cast<int>(matrix.axes[i - 1].values.size())) {
      choices[--i] = 0;
    }
    if (i == 0) return cells;
    ++choices[i - 1];
  }
}

Result<spec::Spec> cell_spec(const Matrix& matrix, const Cell& cell) {
  Result<spec::Spec> spec =
      spec::with_overrides(matrix.base_text, matrix.base_file, cell.overrides);
  if (spec) return spec;
  Diagnostics errors = spec.diagnostics();
  for (Diagnostic& error : errors) {
    for (std::size_t i = 0; i < cell.overrides.size(); ++i) {
      if (error.place.file == "override " + spec::shown(cell.overrides[i].path)) {
        error.place = cell.places[i];
      }
    }
  }
  return Failure(std::move(errors));
}

std::vector<std::string> short_keys(const Matrix& matrix) {
  std::vector<std::string> keys;
  for (const Axis& axis : matrix.axes) keys.insert(keys.end(), axis.keys.begin(), axis.keys.end());
  const auto last_word = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::vector<std::string> names;
  for (const std::string& key : keys) {
    const bool unique = std::ranges::count_if(keys, [&](const std::string& other) {
                          return last_word(other) == last_word(key);
                        }) == 1;
    names.push_back(unique ? last_word(key) : key);
  }
  return names;
}

std::string label(const Matrix& matrix, const Cell& cell) {
  const std::vector<std::string> keys = short_keys(matrix);
  std::string text;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string value = cell.overrides[i].value;
    if (value.size() > 2 && value.starts_with('"')) value = value.substr(1, value.size() - 2);
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", keys[i], value);
  }
  return text;
}

}  // namespace afdep::matrix
