# cmake -DROOT=templates -DLIST=files.txt -DOUTPUT=embedded_files.cpp -P embed.cmake
# Writes a source file that defines afdep::templates::files(): one raw string per file of LIST
# (paths below ROOT, one a line, sorted).

# What no template contains; checked below.
set(delimiter "afdep_text")
# C++ compilers need not support a longer string literal.
set(limit 65000)

file(STRINGS "${LIST}" paths)
set(entries "")
foreach(path IN LISTS paths)
  file(SIZE "${ROOT}/${path}" size)
  if(size GREATER limit)
    message(FATAL_ERROR "templates/${path}: ${size} bytes, over the ${limit} that fit a string "
                        "literal: split the file")
  endif()
  file(READ "${ROOT}/${path}" text)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "templates/${path}: contains the delimiter \")${delimiter}\\\"\"")
  endif()
  string(LENGTH "${text}" length)
  if(NOT length EQUAL size)
    message(FATAL_ERROR "templates/${path}: not text")
  endif()
  string(APPEND entries "    File{\"${path}\", R\"${delimiter}(${text})${delimiter}\"},\n")
endforeach()

list(LENGTH paths count)
set(source "// Written by templates/embed.cmake; do not edit.
#include <array>

#include \"templates/embedded.h\"

namespace afdep::templates {
namespace {

constexpr std::array<File, ${count}> kFiles{
${entries}};

}  // namespace

std::span<const File> files() { return kFiles; }

}  // namespace afdep::templates
")
file(WRITE "${OUTPUT}" "${source}")
