#include "generator/verify/exchange_case.h"

namespace afdep::verify {

std::vector<int> ExchangeCase::tokens() const {
  std::vector<int> counts;
  for (const SourceInput& input : inputs) counts.push_back(input.tokens);
  return counts;
}

ExchangeCase make_case(const Shape& shape, int bucket, int receive_rows,
                       const std::vector<int>& tokens, Routing routing, Random& random) {
  ExchangeCase exchange;
  exchange.bucket = bucket;
  exchange.routing = routing;
  const int favourite = random.below(shape.experts);
  for (const int count : tokens) {
    exchange.inputs.push_back(random_input(shape, count, routing, favourite, random));
  }
  exchange.received = receive_model(shape, exchange.inputs);
  for (const WorkerOutput& received : exchange.received) {
    exchange.replies.push_back(random_replies(shape, received, receive_rows, random));
  }
  exchange.collected = collect_model(shape, exchange.inputs, exchange.received, exchange.replies);
  return exchange;
}

std::vector<int> token_counts(const Shape& shape, int bucket, int round, Random& random) {
  std::vector<int> counts;
  for (int source = 0; source < shape.sources; ++source) {
    int count = random.below(bucket + 1);
    if (random.one_in(4)) count = random.one_in(2) ? 0 : bucket;
    if (round == 0) count = bucket;
    if (round == 1) count = 0;
    counts.push_back(count);
  }
  return counts;
}

}  // namespace afdep::verify
