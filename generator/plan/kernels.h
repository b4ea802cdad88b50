// The kernels of one bucket: shape, named constants, template conditions and steps of each.
#pragma once

#include <vector>

#include "generator/plan/plan.h"
#include "runtime/support/result.h"

namespace afdep::plan {

// What the shapes of a bucket need beyond the plan.
struct BucketRequest {
  int bucket = 0;
  Protocol protocol = Protocol::kFlagInData;
  int attention_sms = 0;
  int ffn_sms = 0;
};

// Words of a run of a flag_in_data bucket: its four kernels share the wire form of a row.
int packet_run(const ExchangePlan& plan, const BucketRequest& request);

// Whether shared memory holds what a bulk bucket of this plan and size needs.
bool bulk_serves(const ExchangePlan& plan, const BucketRequest& request);

// Slices of a source's tokens in a bulk bucket: one a dispatch CTA.
int bulk_slices(const ExchangePlan& plan, const BucketRequest& request);

// Chunks of a bucket's tokens, for the layout: flags of one source at one worker, and of one worker
// at one source.
int dispatch_chunks(const ExchangePlan& plan, const BucketRequest& request);
int reply_chunks(const ExchangePlan& plan, const BucketRequest& request);

// dispatch, receive, reply, collect and, for a chunked or bulk bucket of a layout with a view,
// collect_view. The plan's layouts are final. Fails with kLaunch where receive's rank table does
// not fit an SM's shared memory, or where a bulk bucket's rings do not.
Result<std::vector<Kernel>> kernels_of(const ExchangePlan& plan, const BucketRequest& request);

// What the roles publish to each other in a bucket.
std::vector<Signal> signals_of(const ExchangePlan& plan, Protocol protocol);

}  // namespace afdep::plan
