#include "generator/plan/kernels.h"

#include <string>

#include <fmt/format.h>

#include "generator/plan/bucket_kernels.h"
#include "generator/plan/shape.h"

namespace afdep::plan {

bool bulk_serves(const ExchangePlan& plan, const BucketRequest& request) {
  if (!bulk_fits(plan.row_bytes)) return false;
  const BucketKernels::BulkPlan bulk = BucketKernels(plan, request).bulk_plan();
  return bulk.dispatch_shared_bytes <= kMaxSharedBytes &&
         bulk.receive_shared_bytes <= kMaxSharedBytes;
}

int bulk_slices(const ExchangePlan& plan, const BucketRequest& request) {
  return BucketKernels(plan, request).bulk_plan().slices;
}

int packet_run(const ExchangePlan& plan, const BucketRequest& request) {
  const std::int64_t units = std::int64_t{plan.attention_ranks} * request.bucket;
  int best = kRunWords[0];
  double best_cost = 0;
  for (const int run : kRunWords) {
    const PacketShape source =
        packet_shape(plan.row_bytes, run, request.bucket, request.attention_sms);
    const PacketShape worker = packet_shape(plan.row_bytes, run, units, request.ffn_sms);
    const double cost = packet_cost(source, run, request.bucket) + packet_cost(worker, run, units);
    if (best_cost == 0 || cost < best_cost) {
      best = run;
      best_cost = cost;
    }
  }
  return best;
}

int dispatch_chunks(const ExchangePlan& plan, const BucketRequest& request) {
  const BucketKernels bucket(plan, request);
  if (request.protocol == Protocol::kBulk) return request.bucket;  // a flag a row
  return ceil_div(request.bucket, bucket.dispatch_chunk().chunk_rows);
}

int reply_chunks(const ExchangePlan& plan, const BucketRequest& request) {
  return ceil_div(request.bucket, BucketKernels(plan, request).reply_chunk().chunk_rows);
}

Result<std::vector<Kernel>> kernels_of(const ExchangePlan& plan, const BucketRequest& request) {
  const BucketKernels bucket(plan, request);
  const bool bulk = request.protocol == Protocol::kBulk;
  if (bulk && !bulk_fits(plan.row_bytes)) {
    return Failure(ErrorCode::kLaunch,
                   fmt::format("bucket {}: a ring of two rows of {} bytes does not fit the {} "
                               "bytes of shared memory of a "
                               "CTA that bulk needs",
                               request.bucket, plan.row_bytes, kMaxSharedBytes),
                   "force kernel.protocol: chunked for this bucket");
  }
  Result<Kernel> receive = bulk ? bucket.receive_bulk() : bucket.receive();
  if (!receive.ok()) return receive.failure();
  std::vector<Kernel> kernels{bulk ? bucket.dispatch_bulk() : bucket.dispatch(), *receive,
                              bulk && plan.top_k > 1 ? bucket.reply_bulk() : bucket.reply(),
                              bucket.collect()};
  if (plan.has_view && request.protocol != Protocol::kFlagInData)
    kernels.push_back(bucket.collect_view());
  if (plan.ablation.separate_epilogues) {
    kernels.push_back(bucket.expand());
    kernels.push_back(bucket.reduce());
    if (plan.ablation.dummy_experts) {
      kernels.push_back(bucket.idle(Operation::kIdleExpand));
      kernels.push_back(bucket.idle(Operation::kIdleReduce));
    }
  }
  for (Kernel& kernel : kernels) bucket.ablate(kernel);
  return kernels;
}

std::vector<Signal> signals_of(const ExchangePlan& plan, Protocol protocol) {
  const bool packets = protocol == Protocol::kFlagInData;
  const SignalKind kind = packets ? SignalKind::kPacket : SignalKind::kReleaseFlag;
  const std::string replies = packets ? "reply_packets" : plan.has_view ? "view" : "replies";
  std::vector<Signal> signals;
  if (protocol == Protocol::kBulk) {
    signals.push_back(
        {"counts", SignalKind::kPacket, Role::kAttention, Role::kFfn, "counts", "counts", 0});
    signals.push_back(
        {"choices", SignalKind::kPacket, Role::kAttention, Role::kFfn, "choices", "choices", 0});
  } else {
    signals.push_back(
        {"table", SignalKind::kPacket, Role::kAttention, Role::kFfn, "table", "table", 0});
  }
  signals.push_back({"rows", kind, Role::kAttention, Role::kFfn,
                     packets ? "row_packets" : "row_flags", packets ? "row_packets" : "rows", 0});
  signals.push_back({"replies", kind, Role::kFfn, Role::kAttention,
                     packets ? "reply_packets" : "reply_flags", replies, 0});
  signals.push_back({"done", SignalKind::kDoneWord, Role::kFfn, Role::kAttention, "done", "", 2});
  const auto add_among_all = [&signals](std::string_view region, SignalKind among) {
    const std::string data(among == SignalKind::kCounts ? region : "");
    signals.push_back(
        {std::string(region), among, Role::kAttention, Role::kFfn, std::string(region), data, 0});
  };
  for (const Part part : {Part::kFirst, Part::kSecond}) {
    if (plan.ablation.entry_barrier) add_among_all(entry_region(part), SignalKind::kBarrier);
    if (plan.ablation.dummy_experts) add_among_all(no_rows_region(part), SignalKind::kCounts);
    if (plan.ablation.exit_barrier) add_among_all(exit_region(part), SignalKind::kBarrier);
  }
  return signals;
}

}  // namespace afdep::plan
