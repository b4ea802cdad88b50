// One exchange to run: what goes in, and what the scalar model says must come out.
#pragma once

#include <vector>

#include "generator/verify/inputs.h"
#include "generator/verify/model.h"
#include "generator/verify/random.h"

namespace afdep::verify {

struct ExchangeCase {
  int bucket = 0;
  Routing routing = Routing::kRandom;
  std::vector<SourceInput> inputs;           // by source
  std::vector<std::vector<Bf16>> replies;    // by worker: [receive_rows][hidden]
  std::vector<WorkerOutput> received;        // by worker, expected
  std::vector<std::vector<Bf16>> collected;  // by source, expected

  [[nodiscard]] std::vector<int> tokens() const;
};

// tokens: of each source.
ExchangeCase make_case(const Shape& shape, int bucket, int receive_rows,
                       const std::vector<int>& tokens, Routing routing, Random& random);

// Token counts of the sources: random, full and empty ones among them. `round` 0 fills every
// source, round 1 leaves every source empty.
std::vector<int> token_counts(const Shape& shape, int bucket, int round, Random& random);

}  // namespace afdep::verify
