#include "generator/emit/hygiene.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace afdep::emit {
namespace {

using Strings = std::vector<std::string>;

Strings found_in(std::string_view text) {
  Strings all;
  for (const Diagnostic& diagnostic : check_emitted(text, "k.cu")) {
    EXPECT_EQ(diagnostic.place.file, "k.cu");
    all.push_back(std::to_string(diagnostic.place.line) + ":" +
                  std::to_string(diagnostic.place.column) + " " + diagnostic.message);
  }
  return all;
}

TEST(Hygiene, AcceptsCleanText) {
  EXPECT_EQ(found_in("// a\n#include \"afdep/abi.h\"\n\nint x;\n"), Strings{});
  EXPECT_EQ(found_in(std::string(120, 'x') + "\n"), Strings{});
  std::string wide;
  for (int i = 0; i < 120; ++i) wide += "\u00d7";  // two bytes, one column
  EXPECT_EQ(found_in(wide + "\n"), Strings{});
}

TEST(Hygiene, RefusesPreprocessorConditionals) {
  EXPECT_EQ(found_in("#if X\n  #  ifdef Y\n#elif Z\n#else\n#endif\n"),
            (Strings{"1:1 emitted text: preprocessor conditional",
                     "2:3 emitted text: preprocessor conditional",
                     "3:1 emitted text: preprocessor conditional",
                     "4:1 emitted text: preprocessor conditional",
                     "5:1 emitted text: preprocessor conditional"}));
}

TEST(Hygiene, RefusesLeftoversAndStrayCharacters) {
  EXPECT_EQ(
      found_in("a\tb\nc  \n x //% if\ny ${z}\nr\r\n"),
      (Strings{"1:2 emitted text: tab", "2:2 emitted text: trailing space",
               "3:4 emitted text: directive left over", "4:3 emitted text: substitution left over",
               "5:2 emitted text: carriage return"}));
}

TEST(Hygiene, RefusesLongLines) {
  EXPECT_EQ(found_in(std::string(121, 'x') + "\n"),
            Strings{"1:121 emitted text: 121 columns, over 120"});
}

TEST(Hygiene, RefusesBlankLinesOutOfPlace) {
  EXPECT_EQ(found_in("\na\n\n\nb\n"), (Strings{"1:1 emitted text: blank first line",
                                               "4:1 emitted text: two blank lines in a row"}));
  EXPECT_EQ(found_in("a\n\n"), Strings{"2:1 emitted text: blank last line"});
}

TEST(Hygiene, RefusesAMissingEnd) {
  EXPECT_EQ(found_in("a"), Strings{"1:2 emitted text: no newline at the end"});
  EXPECT_EQ(found_in(""), Strings{"1:1 emitted text: is empty"});
}

}  // namespace
}  // namespace afdep::emit
