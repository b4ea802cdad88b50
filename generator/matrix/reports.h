// A run's report in the forms that people and programs read. Each is a pure function of the report.
#pragma once

#include <cstddef>
#include <string>

#include "generator/matrix/run.h"

namespace afdep::matrix {

// One line a cell: number, axis values, outcome, seconds and what is wrong; then summary().
std::string to_table(const Report& report);

// "84 cells: 82 passed, 2 expected; 251.3 s\n".
std::string summary(const Report& report);

// Everything but pictures, indented by two spaces, ending in a newline: docs/matrix.md.
std::string to_json(const Report& report);

// JUnit XML, as Jenkins, GitLab and GitHub read it: one suite, a test case a cell.
std::string to_junit(const Report& report);

// One self-contained page: no network, no fonts, no other file.
std::string to_html(const Report& report);

}  // namespace afdep::matrix
