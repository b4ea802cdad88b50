#include "generator/matrix/yaml_error.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>

namespace afdep::matrix {

Diagnostic as_matrix_error(Diagnostic error) {
  error.code = ErrorCode::kMatrixFile;
  if (error.message == "the file is empty") {
    error.note = fmt::format("write base and axes; {}", kExample);
  }
  for (std::string* const text : {&error.message, &error.note}) {
    for (const auto& [from, to] :
         std::initializer_list<std::pair<std::string_view, std::string_view>>{
             {"a spec ", "a matrix "},
             {"one spec ", "one matrix "},
             {"the spec", "the matrix"},
             {"spec.yaml", "matrix.yaml"}}) {
      if (const std::size_t at = text->find(from); at != std::string::npos) {
        text->replace(at, from.size(), to);
      }
    }
  }
  return error;
}

}  // namespace afdep::matrix
