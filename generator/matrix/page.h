// The parts of the HTML report that are the same for every matrix: files of report/.
#pragma once

#include <string_view>

namespace afdep::matrix {

// With "@STYLE@", "@SCRIPT@", "@TITLE@" and "@DATA@" where html.cpp puts them.
std::string_view page_html();
std::string_view page_css();
std::string_view page_js();

}  // namespace afdep::matrix
