#include "runtime/support/error_code.h"

#include <array>

#include <fmt/format.h>

namespace afdep {
namespace {

using enum ErrorCode;

constexpr std::array kTable = {
    ErrorInfo{kSpecUnreadable,
              "unreadable: not UTF-8, syntax, several documents, over 1 MB, nesting over 32, tag"},
    ErrorInfo{kSpecKey, "unknown key, duplicate key, anchor, alias, merge key"},
    ErrorInfo{kSpecForm, "wrong type or form of a value"},
    ErrorInfo{kSchemaVersion, "schema_version"},
    ErrorInfo{kSpecName, "name"},
    ErrorInfo{kPreset, "model.preset"},
    ErrorInfo{kMatrixFile, "matrix file"},
    ErrorInfo{kRatio, "ratio or scale"},
    ErrorInfo{kRanksDisagree, "ranks disagree (run time)"},
    ErrorInfo{kRatioAgainstRanks, "ratio against ranks"},
    ErrorInfo{kDomains, "domains"},
    ErrorInfo{kRankOrder, "rank_order"},
    ErrorInfo{kMixedRoles, "mixed"},
    ErrorInfo{kTransport, "transport"},
    ErrorInfo{kNumExperts, "num_experts"},
    ErrorInfo{kTopK, "top_k"},
    ErrorInfo{kTokens, "tokens_per_rank, or T or bucket over it"},
    ErrorInfo{kHiddenSize, "hidden_size"},
    ErrorInfo{kLaunch, "num_sms and launch"},
    ErrorInfo{kPlacement, "experts that do not divide, map, redundant experts"},
    ErrorInfo{kBuckets, "buckets"},
    ErrorInfo{kIdDtype, "id_dtype"},
    ErrorInfo{kDtypeScale, "dtype with scale"},
    ErrorInfo{kScaleLayout, "scale layout"},
    ErrorInfo{kQuantize, "quantize"},
    ErrorInfo{kReplyDtype, "reply dtype"},
    ErrorInfo{kReplyMinBucket, "reply min_bucket"},
    ErrorInfo{kWeights, "weights"},
    ErrorInfo{kReceiveLayout, "receive layout"},
    ErrorInfo{kAlignment, "alignment"},
    ErrorInfo{kSharedExperts, "shared experts"},
    ErrorInfo{kMicrobatches, "microbatches"},
    ErrorInfo{kTimeouts, "timeouts"},
    ErrorInfo{kPayloadTensor, "tensor dtype, shape, stride or device: payload and rows"},
    ErrorInfo{kRouteTensor, "tensor dtype, shape, stride or device: ids and weights"},
    ErrorInfo{kScaleTensor, "tensor dtype, shape, stride or device: scales and statistics"},
    ErrorInfo{kCombineWeights, "combine weights without weights.applied_by: source"},
    ErrorInfo{kBias, "bias"},
    ErrorInfo{kDtypeOnPath, "dtype on this path"},
    ErrorInfo{kArch, "arch"},
    ErrorInfo{kHostCounts, "host counts with capture"},
    ErrorInfo{kUnsupported, "not supported by this build"},
    ErrorInfo{kReceipt, "receipt stale, foreign or reused"},
    ErrorInfo{kCallOrder, "calls out of order"},
    ErrorInfo{kInCapture, "initialization inside capture"},
    ErrorInfo{kMemory, "memory"},
    ErrorInfo{kPeerUnreachable, "peer or transport not reachable"},
    ErrorInfo{kWaitTimedOut, "wait timed out (names the peer)"},
    ErrorInfo{kAborted, "aborted"},
    ErrorInfo{kRouteId, "expert id out of range or repeated within a token (run time)"},
    ErrorInfo{kVerification, "verification: wrong data, deadlock or protocol violation"},
    ErrorInfo{kCacheMiss, "missing in an ahead-of-time cache"},
    ErrorInfo{kVersionSkew, "version skew"},
    ErrorInfo{kDirectory, "cache or output directory"},
    ErrorInfo{kBundle, "damaged or foreign bundle"},
    ErrorInfo{kToolchain, "NVRTC, Clang or the CUDA driver missing or failing"},
};

}  // namespace

std::span<const ErrorInfo> error_table() { return kTable; }

std::string to_string(ErrorCode code) { return fmt::format("E{:03}", static_cast<unsigned>(code)); }

int exit_code(ErrorCode code) {
  switch (code) {
    case kDirectory:
    case kToolchain:
    case kMemory:
    case kPeerUnreachable:
      return 3;
    default:
      return 1;
  }
}

}  // namespace afdep
