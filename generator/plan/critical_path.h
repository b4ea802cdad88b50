// The longest chain of messages of an exchange, each sent after the one before was seen.
#pragma once

#include <vector>

#include "generator/plan/plan.h"

namespace afdep::plan {

// From the steps of the bucket's kernels. Done words, which are awaited two generations on, do not
// count. with_rows: the exchange routes at least one row; without, nobody sends rows or replies.
// Precondition: each awaited signal is published by an earlier or a concurrent step (check()).
std::vector<Hop> longest_chain(const ExchangePlan& plan, const BucketPlan& bucket, bool with_rows);

}  // namespace afdep::plan
