// A spec with some keys replaced, for tools that vary one: matrices, verification at reduced size,
// benchmarks.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::spec {

struct Override {
  std::string path;   // "capacity.tokens_per_rank", "kernel.num_sms.ffn", "ablation.exit_barrier"
  std::string value;  // YAML: "128", "[1, 4]", "auto"
};

// parse() of `text` with each override in place of its key, or added. Overrides apply in order and
// before validation, so the file itself need not be valid in the keys that are replaced. E001 for a
// path that is no key; diagnostics of an override have the file "override PATH".
Result<Spec> with_overrides(std::string_view text, std::string file,
                            std::span<const Override> overrides);

// E001 at `place` if `path` is no key that an override may name: with the nearest key, or, of a
// section, a key of it.
Result<void> check_override_path(const std::string& path, const Place& place);

}  // namespace afdep::spec
