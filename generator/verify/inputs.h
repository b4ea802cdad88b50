// What the sources of an exchange are given: the traffic patterns that exchanges are known to fail
// on.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "generator/verify/model.h"
#include "generator/verify/random.h"

namespace afdep::verify {

enum class Routing : std::uint8_t {
  kRandom,           // distinct experts, uniform
  kOneWorker,        // every token to one worker, to as many of its experts as top-k allows
  kOneExpert,        // every token to one expert
  kDistinctWorkers,  // no two of a token's experts on one worker, as far as there are workers
  kHoles,            // as kRandom with a third of the choices -1, and some tokens all -1
  kNothing,          // every choice -1
  kSkewed,           // distinct experts by Zipf's law: few get most of the tokens
  kBadIds,           // as kRandom with out-of-range and repeated ids
};
std::string_view to_string(Routing routing);

// Every routing but kBadIds.
std::span<const Routing> legal_routings();

// `tokens` tokens: payload of random bits (NaN and infinities among them), random finite weights.
// `favourite` picks the worker or expert that the sources of an exchange share.
SourceInput random_input(const Shape& shape, int tokens, Routing routing, int favourite,
                         Random& random);

// New ids, weights and payload of the same number of tokens; what a graph replay changes in place.
void refill(const Shape& shape, Routing routing, int favourite, Random& random, SourceInput& input);

// Expert outputs [rows][hidden] of a worker: random finite values, zeros of both signs, subnormals
// and now and then an infinity in live rows; NaN in every other row, which nobody may read.
std::vector<Bf16> random_replies(const Shape& shape, const WorkerOutput& received, int rows,
                                 Random& random);

}  // namespace afdep::verify
