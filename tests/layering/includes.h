// Reads #include lines and holds them against the table of allowed edges.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace afdep::layering {

// Where a file belongs: the longest folder of the table that contains it, e.g. "generator/plan" for
// "generator/plan/passes/x.cpp". Empty if the table names no such folder.
std::string_view folder_of(std::string_view path);

// The offending lines of one file, as "path:line: why". `path` is relative to the repository's
// root.
std::vector<std::string> offenders(std::string_view path, std::string_view text);

// The folders on or above a cycle of the table's edges, with commas; empty if there is none.
std::string find_cycle();

}  // namespace afdep::layering
