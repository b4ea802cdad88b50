#include "tests/unit/matrix/markup.h"

#include <regex>
#include <stdexcept>

namespace afdep::testing {
namespace {

[[noreturn]] void fail(const std::string& what, std::string_view rest) {
  throw std::runtime_error(what + " at: " + std::string(rest.substr(0, 60)));
}

void check_text(const std::string& text) {
  static const std::regex kText("([^&<>]|&(amp|lt|gt|quot|#10);)*");
  if (!std::regex_match(text, kText)) fail("text with a bare &, < or >", text);
}

void check_attributes(const std::string& text) {
  static const std::regex kAttributes(
      "(\\s+[A-Za-z_:-]+=\"([^&<\"]|&(amp|lt|gt|quot|#10);)*\")*\\s*");
  if (!std::regex_match(text, kAttributes)) fail("attributes", text);
}

}  // namespace

std::vector<Element> elements_of(std::string_view xml) {
  std::vector<Element> elements;
  std::vector<std::string> open;
  if (xml.starts_with("<?xml ")) xml.remove_prefix(xml.find("?>") + 2);
  while (!xml.empty()) {
    const std::size_t begin = xml.find('<');
    check_text(std::string(xml.substr(0, begin)));
    if (begin == std::string_view::npos) break;
    xml.remove_prefix(begin);
    const std::size_t end = xml.find('>');
    if (end == std::string_view::npos) fail("a tag without an end", xml);
    std::string tag(xml.substr(1, end - 1));
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) fail("an end tag of another element", xml);
      open.pop_back();
    } else {
      const bool empty = tag.ends_with('/');
      if (empty) tag.pop_back();
      const std::size_t name_end = tag.find_first_of(" \n");
      Element element{tag.substr(0, name_end),
                      name_end == std::string::npos ? "" : tag.substr(name_end),
                      open.empty() ? "" : open.back()};
      check_attributes(element.attributes);
      if (!empty) open.push_back(element.name);
      elements.push_back(std::move(element));
    }
    xml.remove_prefix(end + 1);
  }
  if (!open.empty()) fail("no end tag of " + open.back(), "the end");
  return elements;
}

}  // namespace afdep::testing
