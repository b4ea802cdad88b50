// The report for CI servers. Source: the XSD that Jenkins' xUnit plug-in publishes (junit-10.xsd).
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "generator/matrix/reports.h"

namespace afdep::matrix {
namespace {

// XML 1.0 has no place for most control characters, escaped or not.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\n':
        result += "&#10;";
        break;
      default:
        result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return result;
}

// As escaped(), with line breaks as they are: attributes lose them, text keeps them.
std::string escaped_text(std::string_view text) {
  std::string result;
  while (true) {
    const std::size_t end = text.find('\n');
    result += escaped(text.substr(0, end));
    if (end == std::string_view::npos) return result;
    result += '\n';
    text.remove_prefix(end + 1);
  }
}

enum class Verdict : std::uint8_t { kPass, kFailure, kError, kSkipped };

Verdict verdict_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
    case Outcome::kExpected:
      return Verdict::kPass;
    case Outcome::kRefused:
    case Outcome::kFailed:
      return Verdict::kFailure;
    case Outcome::kError:
    case Outcome::kCrashed:
    case Outcome::kTimeout:
      return Verdict::kError;
    case Outcome::kNotRun:
      break;
  }
  return Verdict::kSkipped;
}

std::string test_case(const RunCell& run, const std::string& suite) {
  const CellResult& result = run.result;
  std::string text = fmt::format(
      "    <testcase classname=\"afdep.matrix.{}\" name=\"{}\" time=\"{:.3f}\"", escaped(suite),
      escaped(fmt::format("{:03} {}", run.cell.number, run.label)), result.seconds);
  const std::string details = to_string(result.diagnostics) + result.trace;
  switch (verdict_of(result.outcome)) {
    case Verdict::kPass:
      if (details.empty()) return text + "/>\n";
      return text + fmt::format(">\n      <system-out>{}</system-out>\n    </testcase>\n",
                                escaped_text(details));
    case Verdict::kSkipped:
      return text + ">\n      <skipped message=\"interrupted\"/>\n    </testcase>\n";
    case Verdict::kFailure:
    case Verdict::kError:
      break;
  }
  const std::string_view element =
      verdict_of(result.outcome) == Verdict::kError ? "error" : "failure";
  return text + fmt::format(">\n      <{} type=\"{}\" message=\"{}\">{}</{}>\n    </testcase>\n",
                            element, to_string(result.outcome), escaped(message_of(result)),
                            escaped_text(details), element);
}

}  // namespace

std::string to_junit(const Report& report) {
  const std::string suite = std::filesystem::path(report.matrix->file).stem().string();
  int failures = 0;
  int errors = 0;
  int skipped = 0;
  std::string cases;
  for (const RunCell& run : report.cells) {
    const Verdict verdict = verdict_of(run.result.outcome);
    failures += verdict == Verdict::kFailure;
    errors += verdict == Verdict::kError;
    skipped += verdict == Verdict::kSkipped;
    cases += test_case(run, suite);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"afdep-gen matrix\" tests=\"{0}\" failures=\"{1}\" errors=\"{2}\" "
      "time=\"{4:.3f}\">\n"
      "  <testsuite name=\"{5}\" tests=\"{0}\" failures=\"{1}\" errors=\"{2}\" skipped=\"{3}\" "
      "time=\"{4:.3f}\">\n{6}  </testsuite>\n</testsuites>\n",
      report.cells.size(), failures, errors, skipped, report.seconds, escaped(suite), cases);
}

}  // namespace afdep::matrix
