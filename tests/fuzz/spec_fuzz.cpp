// Any bytes as a spec: reading never crashes, and what is accepted survives printing.
// Corpus: specs/ and tests/specs/.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "generator/spec/compare.h"
#include "generator/spec/digest.h"
#include "generator/spec/printer.h"
#include "generator/spec/reader.h"

namespace {

using afdep::Diagnostic;
using afdep::Result;
using afdep::spec::Spec;

void fail(const char* what, const std::string& text) {
  std::fprintf(stderr, "%s:\n%s\n", what, text.c_str());
  std::abort();
}

void check_prints(const Spec& spec, const std::string& text) {
  const Result<Spec> again = afdep::spec::parse(text, "printed.yaml");
  if (!again) fail("a printed spec is refused", text + to_string(again.diagnostics()));
  if (!same_values(spec, *again)) fail("a printed spec has other values", text);
  if (digest(spec) != digest(*again)) fail("a printed spec has another digest", text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<Spec> spec = afdep::spec::parse(text, "fuzz.yaml");
  if (spec) {
    check_prints(*spec, print(*spec));
    check_prints(*spec, print_resolved(*spec));
    return 0;
  }
  if (spec.diagnostics().empty()) fail("refused without an error", std::string(text));
  for (const Diagnostic& error : spec.diagnostics()) {
    if (error.message.empty() || error.note.empty() || error.place.file != "fuzz.yaml") {
      fail("an error without message, note or file", to_string(error));
    }
  }
  return 0;
}
