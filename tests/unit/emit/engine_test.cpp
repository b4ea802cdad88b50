#include "generator/emit/engine.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace afdep::emit {
namespace {

using Files = std::map<std::string, std::string, std::less<>>;

Result<std::string> expand_files(const Files& files, const Arguments& arguments,
                                 Coverage* coverage = nullptr) {
  const TemplateSource source = [&](std::string_view path) -> std::optional<std::string_view> {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  };
  return expand("k.cu.in", arguments, source, coverage);
}

std::string text_of(const Files& files, const Arguments& arguments) {
  const Result<std::string> result = expand_files(files, arguments);
  return result.ok() ? *result : "FAILED\n" + to_string(result.diagnostics());
}

std::string text_of(const std::string& text, const Arguments& arguments) {
  return text_of(Files{{"k.cu.in", text}}, arguments);
}

// "line:column message" of each mistake, with the file's name in front if it is not k.cu.in.
std::vector<std::string> mistakes_of(const Files& files, const Arguments& arguments) {
  const Result<std::string> result = expand_files(files, arguments);
  if (result.ok()) return {"expanded to:\n" + *result};
  std::vector<std::string> all;
  for (const Diagnostic& diagnostic : result.diagnostics()) {
    std::string message = diagnostic.message;
    EXPECT_TRUE(message.starts_with("template: ")) << message;
    message = message.substr(std::string("template: ").size());
    const Place& place = diagnostic.place;
    all.push_back((place.file == "k.cu.in" ? "" : place.file + ":") + std::to_string(place.line) +
                  ":" + std::to_string(place.column) + " " + message);
  }
  return all;
}

std::vector<std::string> mistakes_of(const std::string& text, const Arguments& arguments) {
  return mistakes_of(Files{{"k.cu.in", text}}, arguments);
}

using Strings = std::vector<std::string>;

TEST(Engine, SubstitutesStringsAndIntegers) {
  EXPECT_EQ(text_of("constexpr int k${name} = ${value};  // ${why}\n",
                    {{"name", "Rows"}, {"value", -8}, {"why", "8 x $ {b}"}}),
            "constexpr int kRows = -8;  // 8 x $ {b}\n");
  EXPECT_EQ(text_of("${a}${a}\n", {{"a", "x"}}), "xx\n");
}

TEST(Engine, SpellsBooleansAsCppDoes) {
  EXPECT_EQ(text_of("f<${yes}, ${no}>\n//% if yes\nx\n//% end\n", {{"yes", true}, {"no", false}}),
            "f<true, false>\nx\n");
}

TEST(Engine, KeepsAConditionalLineWhereItStands) {
  const std::string text = "a\n    //% when on: mark(${x});  // why: so\nb\n";
  EXPECT_EQ(text_of(text, {{"on", true}, {"x", 3}}), "a\n    mark(3);  // why: so\nb\n");
  EXPECT_EQ(text_of(text, {{"on", false}, {"x", 3}}), "a\nb\n");
  EXPECT_EQ(text_of("//% when on: #include \"a.cuh\"\n", {{"on", true}}), "#include \"a.cuh\"\n");
}

TEST(Engine, RefusesIllFormedConditionalLines) {
  const std::string form = " a conditional line is written 'when NAME: TEXT'";
  EXPECT_EQ(mistakes_of("//% when a\n  //% when a b\n//% when a:\n", {}),
            (Strings{"1:1" + form, "2:3" + form, "3:1" + form}));
  EXPECT_EQ(mistakes_of("//% when A: x\n", {}), Strings{"1:10 'A' is not a name"});
  EXPECT_EQ(mistakes_of("//% when a: x  //% if b\n", {{"a", true}}),
            Strings{"1:16 a directive stands alone on its line"});
  EXPECT_EQ(mistakes_of("  //% when a: x ${b}\n", {{"a", true}}), Strings{"1:19 unknown name 'b'"});
  EXPECT_EQ(mistakes_of("//% when n: x\n", {{"n", 1}}),
            Strings{"1:10 'n' is an integer: a condition is a boolean"});
}

TEST(Engine, CoversBothSidesOfAConditionalLine) {
  Coverage coverage;
  const Files files = {{"k.cu.in", "//% when a: x\n"}};
  (void)expand_files(files, {{"a", true}}, &coverage);
  ASSERT_EQ(coverage.missed().size(), 1u);
  EXPECT_EQ(coverage.missed()[0].side, Side::kNotTaken);
  (void)expand_files(files, {{"a", false}}, &coverage);
  EXPECT_TRUE(coverage.missed().empty());
}

TEST(Engine, DoesNotExpandWhatASubstitutionBrings) {
  EXPECT_EQ(text_of("${a}\n", {{"a", "${b}"}}), "${b}\n");
}

TEST(Engine, KeepsIntegersToTheEndsOfTheirRange) {
  EXPECT_EQ(text_of("${a} ${b}\n", {{"a", INT64_MIN}, {"b", INT64_MAX}}),
            "-9223372036854775808 9223372036854775807\n");
  EXPECT_THROW(Value(UINT64_MAX), InternalError);
}

TEST(Engine, TakesTheArmWhoseConditionHolds) {
  const std::string text = "//% if a\nA\n//% elif b\nB\n//% elif not c\nC\n//% else\nD\n//% end\n";
  EXPECT_EQ(text_of(text, {{"a", true}, {"b", true}, {"c", true}}), "A\n");
  EXPECT_EQ(text_of(text, {{"a", false}, {"b", true}, {"c", true}}), "B\n");
  EXPECT_EQ(text_of(text, {{"a", false}, {"b", false}, {"c", false}}), "C\n");
  EXPECT_EQ(text_of(text, {{"a", false}, {"b", false}, {"c", true}}), "D\n");
}

TEST(Engine, AnIndentedDirectiveLeavesItsLinesAsTheyAre) {
  EXPECT_EQ(text_of("f() {\n    //% if not a\n  x();\n    //% end\n}\n", {{"a", false}}),
            "f() {\n  x();\n}\n");
}

TEST(Engine, LoopsOverRecordsAndTheirLists) {
  const std::vector<Record> lanes = {{{"i", 1}}, {{"i", 2}}};
  const std::vector<Record> peers = {{{"rank", 0}, {"local", true}, {"lanes", lanes}},
                                     {{"rank", 7}, {"local", false}, {"lanes", lanes}}};
  EXPECT_EQ(text_of("//% for p in peers\n"
                    "//% if p.local\n"
                    "local ${p.rank}\n"
                    "//% end\n"
                    "//% for l in p.lanes\n"
                    "send(${p.rank}, ${l.i});\n"
                    "//% end\n"
                    "//% end\n",
                    {{"peers", peers}}),
            "local 0\nsend(0, 1);\nsend(0, 2);\nsend(7, 1);\nsend(7, 2);\n");
}

TEST(Engine, AnEmptyListGivesNothing) {
  EXPECT_EQ(
      text_of("a\n//% for p in peers\n${p.rank}\n//% end\nb\n", {{"peers", std::vector<Record>{}}}),
      "a\nb\n");
}

TEST(Engine, IndentsAnIncludedFragmentAsItsLine) {
  const Files files = {{"k.cu.in", "{\n  //% include fragments/a.cu.in\n}\n"},
                       {"fragments/a.cu.in", "if (x) {\n  //% include fragments/b.cu.in\n\n}\n"},
                       {"fragments/b.cu.in", "y(${n});"}};
  EXPECT_EQ(text_of(files, {{"n", 3}}), "{\n  if (x) {\n    y(3);\n\n  }\n}\n");
}

TEST(Engine, AFragmentSeesTheLoopsAroundIt) {
  const Files files = {{"k.cu.in", "//% for p in peers\n//% include fragments/a.cu.in\n//% end\n"},
                       {"fragments/a.cu.in", "${p.rank}\n"}};
  EXPECT_EQ(text_of(files, {{"peers", std::vector<Record>{{{"rank", 1}}, {{"rank", 2}}}}}),
            "1\n2\n");
}

TEST(Engine, DropsCommentsAndNothingElse) {
  EXPECT_EQ(text_of("//%# why\n  //%# more ${x}\na\n// b\n", {}), "a\n// b\n");
}

TEST(Engine, NamesInArmsNotTakenCountAsUsedAndNeedNoValue) {
  EXPECT_EQ(text_of("//% if a\n${b} ${absent}\n//% end\nx\n", {{"a", false}, {"b", 1}}), "x\n");
}

TEST(Engine, ReportsUnknownNamesWithTheirPlaces) {
  EXPECT_EQ(
      mistakes_of("a\n  ${one} ${two}\n//% if three\n//% end\n  //% for x in four\n//% end\n", {}),
      (Strings{"2:5 unknown name 'one'", "2:12 unknown name 'two'", "3:8 unknown name 'three'",
               "5:16 unknown name 'four'"}));
}

TEST(Engine, ReportsAMistakeInALoopOnce) {
  const std::vector<Record> peers = {{{"rank", 0}}, {{"rank", 1}}};
  EXPECT_EQ(mistakes_of("//% for p in peers\n${p.rank}${p.rack}\n//% end\n", {{"peers", peers}}),
            Strings{"2:12 unknown name 'p.rack'"});
}

TEST(Engine, ReportsUnusedArgumentsAndFields) {
  const std::vector<Record> peers = {{{"rank", 0}, {"rail", 1}}};
  EXPECT_EQ(mistakes_of("//% for p in peers\n${p.rank}\n//% end\n", {{"b", 1}, {"peers", peers}}),
            (Strings{"0:0 unused argument 'b'", "0:0 unused argument 'peers[].rail'"}));
}

TEST(Engine, ReportsLoopVariablesOutOfPlace) {
  const std::vector<Record> peers = {{{"rank", 0}}};
  EXPECT_EQ(mistakes_of("${p.rank}\n", {}), Strings{"1:3 'p' is not a loop variable here"});
  EXPECT_EQ(mistakes_of("//% for p in peers\n${p}${p.rank}\n//% end\n", {{"peers", peers}}),
            Strings{"2:3 'p' is a record: name one of its fields, as 'p.field'"});
  EXPECT_EQ(mistakes_of("//% for a in peers\n//% end\n", {{"peers", peers}, {"a", 1}}),
            Strings{"1:9 loop variable 'a' hides an argument of that name"});
  EXPECT_EQ(mistakes_of("//% for p in peers\n//% for p in peers\n${p.rank}\n//% end\n//% end\n",
                        {{"peers", peers}}),
            Strings{"2:9 loop variable 'p' hides a loop variable of that name"});
}

TEST(Engine, FindsLoopVariablesOutOfPlaceInArmsNotTaken) {
  EXPECT_EQ(mistakes_of("//% if a\n${p.rank}\n//% end\n", {{"a", false}}),
            Strings{"2:3 'p' is not a loop variable here"});
}

TEST(Engine, ReportsWrongTypes) {
  const std::vector<Record> peers = {{{"rank", 0}}};
  EXPECT_EQ(mistakes_of("//% if n\n//% elif s\n//% elif not peers\n//% end\n",
                        {{"n", 1}, {"s", "x"}, {"peers", std::vector<Record>{}}}),
            (Strings{"1:8 'n' is an integer: a condition is a boolean",
                     "2:10 's' is a string: a condition is a boolean",
                     "3:14 'peers' is a list: a condition is a boolean"}));
  EXPECT_EQ(mistakes_of("${peers}\n//% for p in b\n//% end\n", {{"b", true}, {"peers", peers}}),
            (Strings{"1:3 'peers' is a list: loop over it",
                     "2:14 'b' is a boolean: a loop takes a list"}));
  EXPECT_EQ(mistakes_of("${s}\n", {{"s", "a\nb"}}), Strings{"1:3 's' holds more than one line"});
}

TEST(Engine, RefusesExpressions) {
  EXPECT_EQ(
      mistakes_of("${a + 1}\n${ a }\n${A}\n${a.b.c}\n${}\n", {{"a", 1}}),
      (Strings{"1:3 'a + 1' is not a name", "2:3 ' a ' is not a name", "3:3 'A' is not a name",
               "4:3 'a.b.c' is not a name", "5:3 '' is not a name"}));
  EXPECT_EQ(mistakes_of("//% if a == b\n//% end\n//% if a && b\n//% end\n//% if !a\n//% end\n", {}),
            (Strings{"1:1 'if' takes one name, or 'not' and one name",
                     "3:1 'if' takes one name, or 'not' and one name", "5:8 '!a' is not a name"}));
}

TEST(Engine, RefusesIllFormedDirectives) {
  EXPECT_EQ(mistakes_of("//% unless a\n//%\n  //% if\n//% end if\n", {}),
            (Strings{"1:1 unknown directive '//% unless a'", "2:1 unknown directive '//%'",
                     "3:3 'if' takes one name, or 'not' and one name",
                     "4:9 'end' takes nothing after it"}));
  EXPECT_EQ(
      mistakes_of("//% for x of xs\n//% end\n//% for X in xs\n//% end\n//% include a b\n", {}),
      (Strings{"1:1 a loop is written 'for VARIABLE in NAME'", "3:9 'X' is not a name",
               "5:1 an include is written 'include fragments/NAME.cu.in'"}));
  EXPECT_EQ(mistakes_of("x;  //% if a\n", {}), Strings{"1:5 a directive stands alone on its line"});
  EXPECT_EQ(mistakes_of("a ${b\n", {}), Strings{"1:3 '${' without '}' on its line"});
  EXPECT_EQ(mistakes_of("a\r\nb\n", {}), Strings{"1:2 carriage return in a template"});
}

TEST(Engine, RefusesUnbalancedDirectives) {
  EXPECT_EQ(mistakes_of("//% end\n//% else\n//% elif a\n", {}),
            (Strings{"1:1 stray 'end': no 'if' or 'for' is open",
                     "2:1 stray 'else': no 'if' or 'for' is open",
                     "3:1 stray 'elif': no 'if' or 'for' is open"}));
  EXPECT_EQ(mistakes_of("  //% if a\n//% for x in xs\n", {}),
            (Strings{"2:1 '//% for x in xs' has no '//% end'", "1:3 '//% if a' has no '//% end'"}));
  EXPECT_EQ(mistakes_of("//% for x in xs\n//% else\n//% end\n", {}),
            Strings{"2:1 'else' inside the 'for' of line 1"});
  EXPECT_EQ(mistakes_of("//% if a\n//% else\n//% elif b\n//% else\n//% end\n", {}),
            (Strings{"3:1 'elif' after the 'else' of the same 'if'",
                     "4:1 'else' after the 'else' of the same 'if'"}));
}

TEST(Engine, ReportsIncludesThatLeadNowhereOrRound) {
  EXPECT_EQ(mistakes_of("  //% include fragments/a.cu.in\n", {}),
            Strings{"1:15 no such template 'fragments/a.cu.in'"});
  const Files files = {{"k.cu.in", "//% if never\n//% include a.in\n//% end\n"},
                       {"a.in", "//% include b.in\n"},
                       {"b.in", "x\n//% include a.in\n"}};
  EXPECT_EQ(mistakes_of(files, {{"never", false}}),
            Strings{"b.in:2:13 include cycle: a.in -> b.in -> a.in"});
  EXPECT_EQ(mistakes_of(Files{}, {}), Strings{"0:0 no such template"});
}

TEST(Engine, SaysFromWhereAFragmentWasIncluded) {
  const Files files = {
      {"k.cu.in", "a\n//% include a.in\n"}, {"a.in", "//% include b.in\n"}, {"b.in", "${x}\n"}};
  const Result<std::string> result = expand_files(files, {});
  ASSERT_FALSE(result.ok());
  ASSERT_EQ(result.diagnostics().size(), 1u);
  EXPECT_EQ(result.diagnostics()[0].place, (Place{"b.in", 1, 3}));
  EXPECT_EQ(result.diagnostics()[0].note, "included from a.in:1; included from k.cu.in:2");
}

TEST(Engine, FragmentMistakesOfFormStopThatFragmentOnly) {
  const Files files = {{"k.cu.in", "${x}\n//% include a.in\n"}, {"a.in", "//% if\n${y}\n"}};
  EXPECT_EQ(mistakes_of(files, {}),
            (Strings{"1:3 unknown name 'x'", "a.in:1:1 'if' takes one name, or 'not' and one name",
                     "a.in:1:1 '//% if' has no '//% end'"}));
}

TEST(Engine, RefusesArgumentsWithNamesNoTemplateCanSay) {
  EXPECT_THROW((void)expand_files({{"k.cu.in", "x\n"}}, {{"Rows", 1}}), InternalError);
  EXPECT_THROW((void)expand_files({{"k.cu.in", "x\n"}}, {{"end", 1}}), InternalError);
}

TEST(Arguments, RefuseASecondBindingOfAName) {
  Arguments arguments = {{"a", 1}};
  EXPECT_THROW(arguments.add("a", 2), InternalError);
}

std::vector<std::string> missed_of(const Coverage& coverage) {
  std::vector<std::string> all;
  for (const MissedSide& missed : coverage.missed()) all.push_back(to_string(missed));
  return all;
}

TEST(Coverage, ListsSidesNeverTaken) {
  const Files files = {{"k.cu.in",
                        "//% if a\n//% if b\nx\n//% end\n//% elif c\ny\n//% else\nz\n//% end\n"
                        "  //% for p in peers\n${p.rank}\n//% end\n"}};
  const std::vector<Record> none;
  const std::vector<Record> one = {{{"rank", 0}}};
  Coverage first;
  ASSERT_TRUE(
      expand_files(files, {{"a", false}, {"b", true}, {"c", true}, {"peers", one}}, &first).ok());
  EXPECT_EQ(
      missed_of(first),
      (Strings{"k.cu.in:1: never taken: //% if a", "k.cu.in:2: never taken: //% if b",
               "k.cu.in:2: never skipped: //% if b", "k.cu.in:5: never skipped: //% elif c",
               "k.cu.in:7: never taken: //% else", "k.cu.in:10: never empty: //% for p in peers"}));

  // When `a` holds, `c` is not evaluated, so neither of its sides is taken.
  Coverage second;
  ASSERT_TRUE(
      expand_files(files, {{"a", true}, {"b", true}, {"c", false}, {"peers", none}}, &second).ok());
  EXPECT_EQ(
      missed_of(second),
      (Strings{"k.cu.in:1: never skipped: //% if a", "k.cu.in:2: never skipped: //% if b",
               "k.cu.in:5: never taken: //% elif c", "k.cu.in:5: never skipped: //% elif c",
               "k.cu.in:7: never taken: //% else", "k.cu.in:10: never ran: //% for p in peers"}));

  first.merge(second);
  EXPECT_EQ(missed_of(first),
            (Strings{"k.cu.in:2: never skipped: //% if b", "k.cu.in:5: never skipped: //% elif c",
                     "k.cu.in:7: never taken: //% else"}));
}

}  // namespace
}  // namespace afdep::emit
