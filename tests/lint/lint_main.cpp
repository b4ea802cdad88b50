// afdep-lint-emitted FILE...: prints findings in emitted kernels; exit code 1 if there are any, 2
// for wrong usage.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "generator/emit/hygiene.h"
#include "tests/lint/lint.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: afdep-lint-emitted FILE...\n");
    return 2;
  }
  const std::vector<afdep::lint::File> headers = afdep::lint::device_headers();
  bool clean = true;
  for (int i = 1; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "afdep-lint-emitted: cannot read %s\n", argv[i]);
      return 2;
    }
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (const afdep::Diagnostic& found : afdep::emit::check_emitted(text, argv[i])) {
      std::printf("%s\n", afdep::to_string(found).c_str());
      clean = false;
    }
    for (const afdep::lint::Finding& found : afdep::lint::lint_emitted(argv[i], text, headers)) {
      std::printf("%s\n", afdep::lint::to_string(found).c_str());
      clean = false;
    }
  }
  return clean ? 0 : 1;
}
