#include "runtime/bundle/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace afdep::bundle {

std::string checksum(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace afdep::bundle
