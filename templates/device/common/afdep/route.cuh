// Top-k routes: which experts, and so which workers, a token goes to. One warp a token; lane k
// holds choice k.
#pragma once

#include "afdep/abi.h"
#include "afdep/memory.cuh"
#include "afdep/thread.cuh"
#include "afdep/wait.cuh"

namespace afdep {

constexpr int kNoExpert = -1;

enum class RouteCheck { kReport, kTrap, kOff };

namespace detail {

template <typename IdType>
AFDEP_DEVICE int64_t load_id(const void* ids, int64_t index);
template <>
AFDEP_DEVICE int64_t load_id<int32_t>(const void* ids, int64_t index) {
  return static_cast<int32_t>(load_input_word(static_cast<const int32_t*>(ids) + index));
}
template <>
AFDEP_DEVICE int64_t load_id<int64_t>(const void* ids, int64_t index) {
  return static_cast<int64_t>(load_input_word64(static_cast<const int64_t*>(ids) + index));
}

}  // namespace detail

// The id of choice k of a token as given; kNoExpert for a token beyond `tokens`. Only loads, so
// that a caller may wait for something else before it looks.
template <typename IdType, int kTopK>
AFDEP_DEVICE int64_t load_choice_of(const void* ids, int token, int k, int tokens) {
  if (token >= tokens) return kNoExpert;
  return detail::load_id<IdType>(ids, static_cast<int64_t>(token) * kTopK + k);
}

// Lane k: that of choice k; kNoExpert for lanes beyond the top-k.
template <typename IdType, int kTopK>
AFDEP_DEVICE int64_t load_choice(const void* ids, int token, int tokens) {
  if (lane_index() >= kTopK) return kNoExpert;
  return load_choice_of<IdType, kTopK>(ids, token, lane_index(), tokens);
}

// A choice of a token: what a lane holds.
struct Choice {
  int token;  // of the source
  int k;      // of the token's top-k
  int group;  // which of the warp's tokens
};

// The expert of this lane's choice, given by load_choice; kNoExpert for -1 and for an id that is
// out of range or repeats an earlier one of the token, so no later step can leave its tables.
// kCheck other than kOff reports or traps on such ids; one caller a token does that.
template <int kExperts, RouteCheck kCheck>
AFDEP_DEVICE int checked_choice(const CommonArgs& args, int64_t given, const Choice& choice,
                                uint32_t generation) {
  static_assert(kExperts < 1 << 16, "a key is the group and the id");
  const int lane = lane_index();
  const bool in_range = given >= 0 && given < kExperts;
  const uint32_t key =
      in_range ? static_cast<uint32_t>(choice.group) << 16 | static_cast<uint32_t>(given)
               : 0x80000000u + static_cast<uint32_t>(lane);
  const bool repeated = lowest_bit(match(key)) != lane;
  const bool bad = (!in_range && given != kNoExpert) || repeated;
  if constexpr (kCheck != RouteCheck::kOff) {
    if (__builtin_expect(bad, 0)) {
      report_route(args, repeated ? kRouteDuplicate : kRouteOutOfRange, generation,
                   static_cast<uint32_t>(choice.token), static_cast<uint32_t>(choice.k), given);
      if constexpr (kCheck == RouteCheck::kTrap) trap();
    }
  }
  return in_range && !bad ? static_cast<int>(given) : kNoExpert;
}

// The same where a warp holds one token: lane k has choice k.
template <int kExperts, RouteCheck kCheck>
AFDEP_DEVICE int checked_route(const CommonArgs& args, int64_t given, int token,
                               uint32_t generation) {
  return checked_choice<kExperts, kCheck>(args, given, Choice{token, lane_index(), 0}, generation);
}

// Lane k: the expert of choice k, given by load_choice, be it a repeated one: enough to know which
// workers a token goes to.
template <int kExperts>
AFDEP_DEVICE int expert_in_range(int64_t given) {
  return given >= 0 && given < kExperts ? static_cast<int>(given) : kNoExpert;
}

template <typename IdType, int kTopK, int kExperts, RouteCheck kCheck>
AFDEP_DEVICE int load_route(const CommonArgs& args, const void* ids, int token, int tokens,
                            uint32_t generation) {
  return checked_route<kExperts, kCheck>(args, load_choice<IdType, kTopK>(ids, token, tokens),
                                         token, generation);
}

// The workers that hold one of a token's experts.
struct Destinations {
  uint64_t mask;  // bit w: worker w

  AFDEP_DEVICE bool includes(int worker) const { return (mask >> worker & 1u) != 0; }
  AFDEP_DEVICE bool empty() const { return mask == 0; }
  AFDEP_DEVICE int count() const { return count_bits(mask); }
  // How many of them come before `worker`: the token's reply slot of that worker.
  AFDEP_DEVICE int before(int worker) const {
    return count_bits(mask & ((uint64_t{1} << worker) - 1));
  }
};

// expert: this lane's choice. Every lane gets the same answer.
template <int kExpertsPerWorker, int kWorkers = kMaxRanks>
AFDEP_DEVICE Destinations destinations(int expert) {
  const uint64_t bit =
      expert == kNoExpert ? 0 : uint64_t{1} << (static_cast<unsigned>(expert) / kExpertsPerWorker);
  const uint64_t low = reduce_or(static_cast<uint32_t>(bit));
  uint64_t high = 0;
  if constexpr (kWorkers > 32) high = reduce_or(static_cast<uint32_t>(bit >> 32));
  return Destinations{high << 32 | low};
}

// The same where a warp holds several tokens, token g in lanes g * kTopK and on: every lane gets
// the answer of its own.
template <int kExpertsPerWorker, int kTopK>
AFDEP_DEVICE Destinations destinations_among(int expert) {
  const int first = lane_index() / kTopK * kTopK;
  Destinations to{0};
#pragma unroll
  for (int k = 0; k < kTopK; ++k) {
    const int other = static_cast<int>(shuffle(static_cast<uint32_t>(expert), first + k & 31));
    if (other == kNoExpert) continue;
    to.mask |= uint64_t{1} << (static_cast<unsigned>(other) / kExpertsPerWorker);
  }
  return to;
}

// Dispatch keeps each token's destinations in the workspace for collect: the caller may change its
// ids in between.
AFDEP_DEVICE void store_destinations(uint8_t* table, int token, const Destinations& to) {
  store_word(table + token * 8, static_cast<uint32_t>(to.mask));
  store_word(table + token * 8 + 4, static_cast<uint32_t>(to.mask >> 32));
}
AFDEP_DEVICE Destinations load_destinations(const uint8_t* table, int token) {
  const uint64_t low = load_word(table + token * 8);
  const uint64_t high = load_word(table + token * 8 + 4);
  return Destinations{high << 32 | low};
}

}  // namespace afdep
