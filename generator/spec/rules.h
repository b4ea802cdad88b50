// The rules of validate(), by concern. Each reports what it finds and reads only keys that are
// good.
#pragma once

#include <optional>

#include "generator/spec/origin.h"
#include "generator/spec/sink.h"
#include "generator/spec/spec.h"

namespace afdep::spec {

struct RuleContext {
  const Spec& spec;
  const Origin& origin;
  Sink& sink;

  // Reports at the value of `path`.
  void report(ErrorCode code, std::string_view path, std::string message, std::string note) const {
    sink.add(code, origin.place(path), std::move(message), std::move(note));
  }

  // True if none of the keys was refused.
  template <typename... Paths>
  [[nodiscard]] bool good(Paths... paths) const {
    return (origin.good(paths) && ...);
  }
};

struct RankCounts {
  int attention = 0;
  int ffn = 0;
};

// E100, E102: ratio, scale and rank counts. The counts, if they are known and legal.
std::optional<RankCounts> check_ranks(const RuleContext& context);

// E103, E105, E106: domains, mixed roles, transport.
void check_domains(const RuleContext& context, const RankCounts& ranks);

// E207: experts over FFN ranks.
void check_placement(const RuleContext& context, const RankCounts& ranks);

// E204, E211, E214, E215, E216, E401: row formats both ways. Precondition of the size rules: the
// hidden size is known; they are skipped otherwise.
void check_formats(const RuleContext& context);

// Domains of one spec, counted: sum of count in the numbered form, entries in the listed form; 1 if
// the key is not given.
long long domain_count(const Spec& spec);

}  // namespace afdep::spec
