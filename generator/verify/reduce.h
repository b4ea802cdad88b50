// The spec that verification runs: the given one, or one with the same structure at a size that the
// emulator runs in seconds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generator/plan/plan.h"
#include "generator/spec/overrides.h"
#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::verify {

struct TestedBucket {
  int tested = 0;  // tokens a source in the spec that is run
  std::vector<int>
      stand_for;  // buckets of the given spec with this protocol and these template structures
  plan::Protocol protocol = plan::Protocol::kFlagInData;
};

struct Subject {
  spec::Spec spec;
  std::vector<TestedBucket> buckets;  // ascending
  std::string text;                   // of the spec as given
};

// Ranks, experts, top-k, alignment, dtypes and every protocol and kernel structure that the plan of
// the spec uses are kept (of more than 32 ranks, one structure a protocol); hidden size (to 280
// elements or less, with the same tail of a row), buckets and SMs shrink. `bucket` other than 0:
// only what stands for this one; E208 if the spec has no such bucket.
// `overrides` are put into the spec first.
Result<Subject> reduce(std::string_view text, const std::string& file, int bucket,
                       std::span<const spec::Override> overrides = {});

// The spec as it is; `bucket` other than 0: this one only.
Result<Subject> at_true_size(std::string_view text, const std::string& file, int bucket,
                             std::span<const spec::Override> overrides = {});

// The hidden size that stands for `hidden`: its rows leave the same rest in packets of 12 bytes,
// and are a multiple of 16 bytes. More ranks, shorter rows.
int reduced_hidden(int hidden, int ranks);

}  // namespace afdep::verify
