// A small plan put together by hand, so that tests of what reads a plan do not depend on the
// planner.
#pragma once

#include "generator/plan/plan.h"

namespace afdep::plan::testing {

struct SampleSize {
  int attention_ranks = 2;
  int ffn_ranks = 2;
  int hidden = 64;
  int experts = 16;
  int top_k = 2;
  int packet_bucket = 2;   // flag_in_data
  int chunked_bucket = 8;  // chunked, chunks of 4 rows
};

// Two buckets. With one FFN rank it has a view. Regions follow each other in 256-byte steps.
ExchangePlan sample_plan(const SampleSize& size = {});

}  // namespace afdep::plan::testing
