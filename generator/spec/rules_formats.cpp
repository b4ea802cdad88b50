#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "generator/spec/names.h"
#include "generator/spec/resolve.h"
#include "generator/spec/rules.h"

namespace afdep::spec {
namespace {

using enum ErrorCode;

struct LegalPair {
  DispatchDtype dtype;
  Scale scale;
};

constexpr std::array kLegalPairs = {
    LegalPair{DispatchDtype::kBf16, Scale::kNone},
    LegalPair{DispatchDtype::kFp16, Scale::kNone},
    LegalPair{DispatchDtype::kFp8E4m3, Scale::kFp32Block128},
    LegalPair{DispatchDtype::kFp8E4m3, Scale::kFp32Token},
    LegalPair{DispatchDtype::kFp8E4m3, Scale::kUe8m0Block128},
    LegalPair{DispatchDtype::kFp8E5m2, Scale::kFp32Block128},
    LegalPair{DispatchDtype::kFp8E5m2, Scale::kFp32Token},
    LegalPair{DispatchDtype::kFp8E5m2, Scale::kUe8m0Block128},
    LegalPair{DispatchDtype::kMxfp8E4m3, Scale::kE8m0Block32},
    LegalPair{DispatchDtype::kMxfp8E5m2, Scale::kE8m0Block32},
    LegalPair{DispatchDtype::kMxfp4E2m1, Scale::kE8m0Block32},
    LegalPair{DispatchDtype::kInt8, Scale::kFp32Token},
};

int bits_of(DispatchDtype dtype) {
  switch (dtype) {
    case DispatchDtype::kBf16:
    case DispatchDtype::kFp16:
      return 16;
    case DispatchDtype::kMxfp4E2m1:
      return 4;
    default:
      return 8;
  }
}

// Elements that share a scale; 1 where any hidden size goes.
int block_of(Scale scale) {
  switch (scale) {
    case Scale::kFp32Block128:
    case Scale::kUe8m0Block128:
      return 128;
    case Scale::kE8m0Block32:
      return 32;
    default:
      return 1;
  }
}

bool is_legal(DispatchDtype dtype, Scale scale) {
  return std::any_of(kLegalPairs.begin(), kLegalPairs.end(), [&](const LegalPair& pair) {
    return pair.dtype == dtype && pair.scale == scale;
  });
}

std::string nearest_multiples(int value, int of) {
  const int below = value / of * of;
  return below == 0 ? fmt::format("use a multiple of {}, such as {}", of, of)
                    : fmt::format("use a multiple of {}, such as {} or {}", of, below, below + of);
}

// The hidden size fills whole blocks of `block` elements, as `key` = `value` needs.
bool check_block(const RuleContext& context, int block, std::string_view key,
                 std::string_view value) {
  const int hidden = context.spec.model.hidden_size.value;
  if (hidden % block == 0) return true;
  context.report(
      kHiddenSize, "model.hidden_size",
      fmt::format("model.hidden_size = {} is not a multiple of {}, the elements per scale "
                  "of {} = {}",
                  hidden, block, key, value),
      nearest_multiples(hidden, block));
  return false;
}

void check_hidden_size(const RuleContext& context) {
  const Spec& spec = context.spec;
  const int hidden = spec.model.hidden_size.value;
  if (hidden == 0 || !context.good("model.hidden_size")) return;
  if (context.good("dispatch.dtype", "dispatch.scale")) {
    const Scale scale = dispatch_scale(spec);
    const DispatchDtype dtype = spec.dispatch_dtype.value;
    // What an illegal pair would need of the hidden size is no matter.
    const bool blocks = !is_legal(dtype, scale) ||
                        check_block(context, block_of(scale), "dispatch.scale", to_name(scale));
    const int bits = hidden * bits_of(dtype);
    if (blocks && bits % 128 != 0) {
      context.report(
          kHiddenSize, "model.hidden_size",
          fmt::format("model.hidden_size = {} makes a row of {} bytes in {}, not a multiple of 16",
                      hidden, bits / 8, to_name(dtype)),
          nearest_multiples(hidden, 128 / bits_of(dtype)));
    }
  }
  if (context.good("reply.dtype") && spec.reply_dtype.value == ReplyDtype::kFp8E4m3) {
    check_block(context, 128, "reply.dtype", "fp8_e4m3");
  }
}

void check_dispatch(const RuleContext& context) {
  const Spec& spec = context.spec;
  if (!context.good("dispatch.dtype")) return;
  const DispatchDtype dtype = spec.dispatch_dtype.value;
  if (context.good("dispatch.scale")) {
    const Scale scale = dispatch_scale(spec);
    if (!is_legal(dtype, scale)) {
      std::vector<std::string_view> legal;
      for (const LegalPair& pair : kLegalPairs) {
        if (pair.dtype == dtype) legal.push_back(to_name(pair.scale));
      }
      context.report(kDtypeScale, "dispatch.scale",
                     fmt::format("dispatch.scale = {} does not go with dispatch.dtype = {}",
                                 to_name(scale), to_name(dtype)),
                     fmt::format("{} goes with {}", to_name(dtype), join(legal)));
    }
  }
  const bool is_16_bit = dtype == DispatchDtype::kBf16 || dtype == DispatchDtype::kFp16;
  if (context.good("dispatch.quantize") && is_16_bit &&
      spec.dispatch_quantize.value == Quantize::kKernel) {
    context.report(
        kQuantize, "dispatch.quantize",
        fmt::format("dispatch.quantize = kernel, but dispatch.dtype = {} is not quantized",
                    to_name(dtype)),
        "use caller, or an 8-bit or 4-bit dtype");
  }
}

void check_reply(const RuleContext& context) {
  const Spec& spec = context.spec;
  if (!context.good("reply.dtype")) return;
  const ReplyDtype dtype = spec.reply_dtype.value;
  const bool lossy = dtype == ReplyDtype::kFp8E4m3;
  if (lossy && context.good("reply.allow_lossy") && !spec.reply_allow_lossy.value) {
    context.report(kReplyDtype, "reply.dtype",
                   "reply.dtype = fp8_e4m3 rounds the replies, but reply.allow_lossy = false",
                   "write allow_lossy: true, or use bf16, fp16 or fp32");
  }
  if (lossy && context.good("topology.domains") && domain_count(spec) == 1) {
    context.report(kDtypeOnPath, "reply.dtype",
                   "reply.dtype = fp8_e4m3 travels between NVLink domains only, and there is one",
                   "use bf16, fp16 or fp32");
  }
  const int min_bucket = spec.reply_min_bucket.value;
  if (!context.good("reply.min_bucket") || min_bucket == 0) return;
  if (!lossy) {
    context.report(kReplyMinBucket, "reply.min_bucket",
                   fmt::format("reply.min_bucket = {} is for reply.dtype = fp8_e4m3, but it is {}",
                               min_bucket, to_name(dtype)),
                   "remove it: replies have one dtype in every bucket");
  } else if (context.good("capacity.tokens_per_rank") && spec.capacity.tokens_per_rank.given &&
             min_bucket > spec.capacity.tokens_per_rank.value) {
    context.report(kReplyMinBucket, "reply.min_bucket",
                   fmt::format("reply.min_bucket = {} exceeds capacity.tokens_per_rank = {}",
                               min_bucket, spec.capacity.tokens_per_rank.value),
                   "no bucket would have fp8 replies: use a smaller one, or reply.dtype bf16");
  }
}

}  // namespace

void check_formats(const RuleContext& context) {
  check_hidden_size(context);
  check_dispatch(context);
  check_reply(context);
}

}  // namespace afdep::spec
