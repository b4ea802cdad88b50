// A spec to tune.
#pragma once

#include <stdexcept>
#include <string>

#include "generator/spec/reader.h"

namespace afdep::tune {

inline spec::Spec sample_spec(const std::string& kernel = "") {
  const std::string text =
      "schema_version: 1\nname: sample\n"
      "model: {hidden_size: 2048, num_experts: 128, top_k: 8}\n"
      "topology: {ratio: \"2A2F\"}\n"
      "capacity: {tokens_per_rank: 2048, buckets: [1, 128, 2048]}\n" +
      kernel;
  const Result<spec::Spec> spec = spec::parse(text, "sample.yaml");
  if (!spec.ok()) throw std::runtime_error(to_string(spec.diagnostics()));
  return *spec;
}

}  // namespace afdep::tune
