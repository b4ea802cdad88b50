#include "generator/verify/reduce.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "generator/generate.h"
#include "generator/spec/overrides.h"
#include "generator/spec/reader.h"

namespace afdep::verify {
namespace {

// How much of a layout the emulator runs in about a second a seed.
struct Scale {
  int max_ranks;  // the last one is for any number
  int hidden[3];  // elements, by what a row leaves in packets of 12 bytes: 0, 4 and 8
  int attention_sms, ffn_sms;
  std::vector<int>
      packet_buckets;  // sizes tried, smallest first, until the structure is the wanted one
  std::vector<int> chunk_buckets;
  std::vector<int> bulk_buckets;  // so large that every ring of stages goes round
  bool every_structure;           // else one bucket a protocol
};

const Scale& scale_of(int ranks) {
  static const std::vector<Scale> kScales{
      // Rows of 33 to 35 vectors: more than a warp moves at once, and a tail. Chunks of several
      // rows.
      {4, {264, 272, 280}, 2, 3, {2, 3, 5, 9, 17, 33, 48}, {37, 70}, {131, 150}, true},
      {8, {264, 272, 280}, 2, 2, {2, 3, 5, 9, 17, 33, 48}, {37, 70}, {131, 150}, true},
      {32, {72, 56, 64}, 1, 2, {2, 3, 5, 9, 17, 24}, {3, 5, 9, 17, 24}, {53, 60}, true},
      {0, {72, 56, 64}, 1, 1, {2, 3}, {3, 5}, {5, 7}, false},
  };
  for (const Scale& scale : kScales) {
    if (ranks <= scale.max_ranks) return scale;
  }
  return kScales.back();
}

// What decides which template text a bucket's kernels have.
using Structure = std::pair<plan::Protocol, std::vector<std::map<std::string, bool>>>;

Structure structure_of(const plan::BucketPlan& bucket) {
  Structure structure{bucket.protocol, {}};
  for (const plan::Kernel& kernel : bucket.kernels) structure.second.push_back(kernel.structure);
  return structure;
}

// Buckets of the plan that differ in structure, each with the buckets like it.
std::vector<std::pair<Structure, std::vector<int>>> wanted_structures(
    const plan::ExchangePlan& plan, int only_bucket, bool every_structure) {
  std::vector<std::pair<Structure, std::vector<int>>> wanted;
  for (const plan::BucketPlan& bucket : plan.buckets) {
    if (only_bucket != 0 && bucket.bucket != only_bucket) continue;
    const Structure structure = structure_of(bucket);
    const auto known = std::ranges::find_if(wanted, [&](const auto& each) {
      return every_structure ? each.first == structure : each.first.first == structure.first;
    });
    if (known == wanted.end()) {
      wanted.push_back({structure, {bucket.bucket}});
    } else {
      known->second.push_back(bucket.bucket);
    }
  }
  return wanted;
}

class Reducer {
 public:
  Reducer(std::string_view text, std::string file, const plan::ExchangePlan& plan,
          std::span<const spec::Override> given)
      : text_(text),
        file_(std::move(file)),
        given_(given),
        scale_(scale_of(plan.ranks())),
        hidden_(reduced_hidden(plan.hidden, plan.ranks())) {}

  Result<spec::Spec> with_buckets(const std::vector<TestedBucket>& buckets) const {
    std::vector<int> sizes;
    std::string protocols;
    for (const TestedBucket& bucket : buckets) {
      sizes.push_back(bucket.tested);
      protocols += fmt::format("{}{}: {}", protocols.empty() ? "" : ", ", bucket.tested,
                               plan::to_string(bucket.protocol));
    }
    std::vector<spec::Override> overrides(given_.begin(), given_.end());
    overrides.push_back({"model.hidden_size", fmt::format("{}", hidden_)});
    overrides.push_back({"capacity.tokens_per_rank", fmt::format("{}", sizes.back())});
    overrides.push_back({"capacity.buckets", fmt::format("[{}]", fmt::join(sizes, ", "))});
    overrides.push_back({"kernel.num_sms", fmt::format("{{attention: {}, ffn: {}}}",
                                                       scale_.attention_sms, scale_.ffn_sms)});
    overrides.push_back({"kernel.protocol", fmt::format("{{{}}}", protocols)});
    return spec::with_overrides(text_, file_, overrides);
  }

  // The smallest size above `above` that has the structure; else just one above it.
  Result<int> find_size(const Structure& structure, int above) const {
    const std::vector<int>& sizes = structure.first == plan::Protocol::kBulk ? scale_.bulk_buckets
                                    : structure.first == plan::Protocol::kChunked
                                        ? scale_.chunk_buckets
                                        : scale_.packet_buckets;
    for (const int size : sizes) {
      if (size <= above) continue;
      const Result<spec::Spec> spec =
          with_buckets({{.tested = size, .stand_for = {}, .protocol = structure.first}});
      if (!spec.ok()) return spec.failure();
      const Result<plan::ExchangePlan> plan = plan_exchange(*spec);
      if (!plan.ok()) return plan.failure();
      if (structure_of(plan->buckets.front()) == structure) return size;
    }
    return std::max(above + 1, sizes.front());
  }

 private:
  std::string_view text_;
  std::string file_;
  std::span<const spec::Override> given_;
  const Scale& scale_;
  int hidden_;
};

Result<plan::ExchangePlan> plan_of(std::string_view text, const std::string& file,
                                   std::span<const spec::Override> overrides) {
  const Result<spec::Spec> spec = spec::with_overrides(text, file, overrides);
  if (!spec.ok()) return spec.failure();
  return plan_exchange(*spec);
}

Failure no_bucket(const plan::ExchangePlan& plan, int bucket) {
  std::vector<int> known;
  for (const plan::BucketPlan& each : plan.buckets) known.push_back(each.bucket);
  return Failure(ErrorCode::kBuckets,
                 fmt::format("bucket {} is not a bucket of {}", bucket, plan.name),
                 fmt::format("capacity.buckets holds {}", fmt::join(known, ", ")));
}

}  // namespace

int reduced_hidden(int hidden, int ranks) {
  const Scale& scale = scale_of(ranks);
  return std::min(hidden, scale.hidden[hidden * 2 % 12 / 4]);
}

Result<Subject> reduce(std::string_view text, const std::string& file, int bucket,
                       std::span<const spec::Override> given) {
  const Result<plan::ExchangePlan> plan = plan_of(text, file, given);
  if (!plan.ok()) return plan.failure();
  const auto wanted = wanted_structures(*plan, bucket, scale_of(plan->ranks()).every_structure);
  if (wanted.empty()) return no_bucket(*plan, bucket);

  const Reducer reducer(text, file, *plan, given);
  Subject subject;
  subject.text = text;
  for (const auto& [structure, stand_for] : wanted) {
    const int above = subject.buckets.empty() ? 0 : subject.buckets.back().tested;
    const Result<int> size = reducer.find_size(structure, above);
    if (!size.ok()) return size.failure();
    subject.buckets.push_back(
        {.tested = *size, .stand_for = stand_for, .protocol = structure.first});
  }
  Result<spec::Spec> spec = reducer.with_buckets(subject.buckets);
  if (!spec.ok()) return spec.failure();
  subject.spec = std::move(*spec);
  return subject;
}

Result<Subject> at_true_size(std::string_view text, const std::string& file, int bucket,
                             std::span<const spec::Override> given) {
  const Result<plan::ExchangePlan> plan = plan_of(text, file, given);
  if (!plan.ok()) return plan.failure();
  Subject subject;
  subject.text = text;
  for (const plan::BucketPlan& each : plan->buckets) {
    if (bucket != 0 && each.bucket != bucket) continue;
    subject.buckets.push_back(
        {.tested = each.bucket, .stand_for = {each.bucket}, .protocol = each.protocol});
  }
  if (subject.buckets.empty()) return no_bucket(*plan, bucket);
  std::vector<spec::Override> overrides(given.begin(), given.end());
  if (bucket != 0) {
    overrides.push_back({"capacity.buckets", fmt::format("[{}]", bucket)});
    overrides.push_back(
        {"kernel.protocol", std::string(plan::to_string(subject.buckets.front().protocol))});
  }
  Result<spec::Spec> spec = spec::with_overrides(text, file, overrides);
  if (!spec.ok()) return spec.failure();
  subject.spec = std::move(*spec);
  return subject;
}

}  // namespace afdep::verify
