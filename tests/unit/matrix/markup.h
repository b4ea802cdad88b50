// A check of tags, for reports in XML and HTML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace afdep::testing {

struct Element {
  std::string name;
  std::string attributes;  // as written
  std::string parent;      // name of the enclosing element
};

// Every element in document order. Throws std::runtime_error, naming the place, where the text is
// not well-formed XML of the plain kind: declaration, elements, quoted attributes, entities.
std::vector<Element> elements_of(std::string_view xml);

}  // namespace afdep::testing
