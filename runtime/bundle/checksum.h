#pragma once

#include <string>
#include <string_view>

namespace afdep::bundle {

// XXH3-128 of the bytes as 32 hex digits: finds damage, not forgery.
std::string checksum(std::string_view bytes);

}  // namespace afdep::bundle
