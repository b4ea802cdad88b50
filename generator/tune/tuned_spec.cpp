#include "generator/tune/tuned_spec.h"

#include <fmt/format.h>

#include "generator/spec/names.h"
#include "generator/spec/printer.h"

namespace afdep::tune {
namespace {

std::string sms_text(const spec::NumSms& sms) {
  return fmt::format("{}+{}", sms.attention, sms.ffn);
}

}  // namespace

spec::Spec tuned(const spec::Spec& spec, const Choice& choice, const std::string& gpu) {
  spec::Spec result = spec;
  result.num_sms.value = choice.sms;
  result.num_sms.given = true;
  result.bucket_protocol.value.clear();
  for (const BucketChoice& bucket : choice.buckets) {
    result.bucket_protocol.value[bucket.bucket] = bucket.protocol;
  }
  result.bucket_protocol.given = true;
  result.tuned_on.value = gpu;
  result.tuned_on.given = true;
  return result;
}

std::string tuned_text(const spec::Spec& spec, const Choice& choice, const Identity& identity) {
  std::string text = fmt::format(
      "# Tuned by afdep-bench {} on {}, driver {}: every rank a stream of that GPU.\n"
      "# {}\n"
      "# us an exchange with {} SMs (attention + ffn); before: what the planner takes by itself\n",
      identity.generator, identity.gpu, identity.driver, identity.method, sms_text(choice.sms));
  for (const BucketChoice& bucket : choice.buckets) {
    text += fmt::format("#   bucket {:<6} {:<13} {:>8.2f}", bucket.bucket, to_name(bucket.protocol),
                        bucket.us);
    if (bucket.untuned) {
      text += fmt::format("   before: {:<13} {:<7} {:>8.2f}", to_name(bucket.untuned->protocol),
                          sms_text(bucket.untuned->sms), bucket.untuned_us);
    }
    text += "\n";
  }
  return text + print(tuned(spec, choice, identity.gpu));
}

std::string tuned_elsewhere(const spec::Spec& spec, std::string_view gpu) {
  const std::string& tuned_on = spec.tuned_on.value;
  if (tuned_on.empty() || tuned_on == gpu) return {};
  return fmt::format(
      "{}: warning: tuned on {}, this GPU is {}\n"
      "  note: take kernel.num_sms, protocol and tuned_on out and run afdep-bench tune here\n",
      spec.file, tuned_on, gpu);
}

}  // namespace afdep::tune
