// What a tuner measures: for each bucket, the ways of running it that give different kernels.
#pragma once

#include <string>
#include <vector>

#include "generator/spec/spec.h"
#include "runtime/support/result.h"

namespace afdep::tune {

// A way of running one bucket.
struct Variant {
  int bucket = 0;
  spec::Protocol protocol = spec::Protocol::kAuto;  // never kAuto
  spec::NumSms sms;                                 // never auto

  friend bool operator==(const Variant&, const Variant&) = default;
};

// "512 bulk 16+48": bucket, protocol, SMs of an attention and of an FFN rank.
std::string name_of(const Variant& variant);

// Variants with the same kernels: a small bucket does not use more SMs than it has rows.
struct Arm {
  std::vector<Variant> variants;  // the first names it

  [[nodiscard]] std::string name() const { return name_of(variants.front()); }
};

struct BucketArms {
  int bucket = 0;
  std::vector<Arm> arms;
};

struct Space {
  std::vector<int> sms{16, 24, 32, 48};  // of a rank, to try for each role
  int sm_count = 132;                    // of the GPU that all ranks share while they are measured
};

// The spec of one variant: that bucket alone.
spec::Spec spec_of(const spec::Spec& spec, const Variant& variant);

// Only what the spec leaves to `auto` varies: SMs of a role that are given, and protocols of
// buckets that are given, stay. All ranks' CTAs must have an SM of their own; fails with E206 and
// the sum if no pair of numbers of SMs leaves that room, or if a bucket cannot run at all.
// Protocols that cannot win are left out: packets far above, others far below the size from which
// the planner moves raw rows. Precondition: spec::parse accepted the spec.
Result<std::vector<BucketArms>> arms_of(const spec::Spec& spec, const Space& space);

}  // namespace afdep::tune
