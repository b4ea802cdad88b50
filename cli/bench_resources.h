// What each role of a compiled bundle holds of this GPU during an exchange.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "generator/plan/resources.h"
#include "runtime/bundle/manifest.h"

namespace afdep::cli {

struct BucketResources {
  int bucket = 0;
  std::string protocol;
  plan::Resources attention;
  plan::Resources ffn;
};

// Registers are the compiler's for `arch`.
std::vector<BucketResources> resources_of(const bundle::Manifest& manifest, std::string_view arch,
                                          int sm_count);

std::string to_text(const std::vector<BucketResources>& buckets, int sm_count);
// A JSON array's text.
std::string to_json_text(const std::vector<BucketResources>& buckets);

}  // namespace afdep::cli
