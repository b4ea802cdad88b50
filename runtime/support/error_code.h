// Stable error codes: one table feeds messages, documentation and tests.
// Source: the table "Error codes" of docs/errors.md, which a test compares with error_table().
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace afdep {

// The number is the code: kSpecUnreadable prints as "E000". Codes are never reused or renumbered.
enum class ErrorCode : std::uint16_t {
  kSpecUnreadable = 0,   // not UTF-8, syntax, several documents, over 1 MB, nesting over 32, tag
  kSpecKey = 1,          // unknown key, duplicate key, anchor, alias, merge key
  kSpecForm = 2,         // wrong type or form of a value
  kSchemaVersion = 3,    //
  kSpecName = 4,         //
  kPreset = 5,           //
  kMatrixFile = 9,       //
  kRatio = 100,          // ratio or scale
  kRanksDisagree = 101,  // run time: ranks were built from different specs or versions
  kRatioAgainstRanks = 102,
  kDomains = 103,
  kRankOrder = 104,
  kMixedRoles = 105,
  kTransport = 106,
  kNumExperts = 201,
  kTopK = 202,
  kTokens = 203,  // tokens_per_rank, or T or bucket over it
  kHiddenSize = 204,
  kLaunch = 206,     // num_sms and launch, co-residency
  kPlacement = 207,  // experts that do not divide, map, redundant experts
  kBuckets = 208,
  kIdDtype = 210,
  kDtypeScale = 211,
  kScaleLayout = 212,
  kQuantize = 214,
  kReplyDtype = 215,
  kReplyMinBucket = 216,
  kWeights = 218,
  kReceiveLayout = 219,
  kAlignment = 220,
  kSharedExperts = 222,
  kMicrobatches = 223,
  kTimeouts = 224,
  kPayloadTensor = 301,  // dtype, shape, stride or device of payload and rows
  kRouteTensor = 302,    // dtype, shape, stride or device of ids and weights
  kScaleTensor = 303,
  kCombineWeights = 304,
  kBias = 305,
  kDtypeOnPath = 401,
  kArch = 402,
  kHostCounts = 403,
  kUnsupported = 404,  // legal, but not supported by this build
  kReceipt = 501,      // stale, foreign or reused
  kCallOrder = 502,
  kInCapture = 503,
  kMemory = 601,
  kPeerUnreachable = 602,
  kWaitTimedOut = 701,  // names the peer
  kAborted = 702,
  kRouteId = 703,       // run time: expert id out of range or repeated within a token
  kVerification = 704,  // the emulator found wrong data, a deadlock or a protocol violation
  kCacheMiss = 801,     // missing in an ahead-of-time cache
  kVersionSkew = 802,
  kDirectory = 803,  // cache or output directory
  kBundle = 804,     // damaged or foreign bundle
  kToolchain = 805,  // NVRTC, Clang or the CUDA driver missing or failing
};

struct ErrorInfo {
  ErrorCode code;
  std::string_view title;  // a few words, e.g. "tokens_per_rank, or T or bucket over it"
};

// Every code, ascending.
std::span<const ErrorInfo> error_table();

// "E203".
std::string to_string(ErrorCode code);

// Process exit code for a failure with this code: 1 refused (spec or verification), 3 toolchain or
// environment.
int exit_code(ErrorCode code);

}  // namespace afdep
