# cmake -DROOT=report -DOUTPUT=page.cpp -P embed.cmake
# Writes the source file that defines the texts of generator/matrix/page.h.
set(delimiter "afdep_page")  # checked below
set(source "// Written by generator/matrix/report/embed.cmake; do not edit.
#include \"generator/matrix/page.h\"

namespace afdep::matrix {

")
foreach(part IN ITEMS "page.html|page_html" "page.css|page_css" "page.js|page_js")
  string(REPLACE "|" ";" part "${part}")
  list(GET part 0 file)
  list(GET part 1 function)
  file(READ "${ROOT}/${file}" text)
  string(FIND "${text}" ")${delimiter}\"" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} contains the delimiter of its string literal")
  endif()
  string(APPEND source "std::string_view ${function}() {
  return R\"${delimiter}(${text})${delimiter}\";
}

")
endforeach()
string(APPEND source "}  // namespace afdep::matrix\n")
file(WRITE "${OUTPUT}" "${source}")
