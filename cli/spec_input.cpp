#include "cli/spec_input.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <utility>

#include "generator/spec/reader.h"
#include "generator/spec/source_text.h"

namespace afdep::cli {
namespace {

// Stops at the first byte too many: spec::parse then says what the limit is.
Result<SpecText> read_stdin() {
  SpecText spec{.text = {}, .file = "<stdin>"};
  std::array<char, 65536> block;
  while (spec.text.size() <= spec::kMaxFileBytes) {
    const std::size_t got = std::fread(block.data(), 1, block.size(), stdin);
    if (got == 0) break;
    spec.text.append(block.data(), got);
  }
  if (std::ferror(stdin) != 0) {
    return Failure(Diagnostic{ErrorCode::kSpecUnreadable,
                              {spec.file, 0, 0},
                              "standard input cannot be read",
                              "give the spec as a file, or pipe it in"});
  }
  return spec;
}

}  // namespace

Result<SpecText> read_spec(const std::string& name) {
  if (name == "-") return read_stdin();
  Result<std::string> text = spec::read_text(name);
  if (!text.ok()) return text.failure();
  return SpecText{std::move(*text), name};
}

Result<spec::Spec> load_spec(const std::string& name) {
  Result<SpecText> input = read_spec(name);
  if (!input.ok()) return input.failure();
  return spec::parse(input->text, input->file);
}

}  // namespace afdep::cli
