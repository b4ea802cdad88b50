// The choice, from what was measured.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "generator/spec/spec.h"
#include "generator/tune/arms.h"
#include "generator/tune/state.h"
#include "runtime/support/result.h"

namespace afdep::tune {

struct BucketChoice {
  int bucket = 0;
  spec::Protocol protocol = spec::Protocol::kAuto;  // never kAuto
  double us = 0;                                    // median
  // What the planner takes for a spec that says nothing; none if that was not measured.
  std::optional<Variant> untuned;
  double untuned_us = 0;
};

struct Choice {
  spec::NumSms sms;
  double score = 1;  // geometric mean over buckets of time / best time of the bucket in any arm
  std::vector<BucketChoice> buckets;
};

double median_of(std::vector<double> samples);  // the upper one of two; not of none

// One pair of SMs for the whole spec, since that is what the key says: the one with the lowest
// score. Pairs within one part in a hundred of it count as equal, and the one with the fewest SMs
// over all ranks is taken. With that pair each bucket's fastest protocol, where the planner's own
// choice counts as equal too if it is that near. E206 if no pair was measured in every bucket, with
// the reason of an arm.
Result<Choice> choose(const spec::Spec& spec, const std::vector<BucketArms>& arms,
                      const State& state);

// What the planner makes of the bucket by itself.
Variant untuned_variant(const spec::Spec& spec, int bucket);

}  // namespace afdep::tune
