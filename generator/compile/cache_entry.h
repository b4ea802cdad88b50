// The bytes of one cache entry. Internal to the cache.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generator/compile/module.h"

namespace afdep::compile {

// Header (magic, form, checksum over all that follows, key, figures, lengths), then symbol, arch
// and image.
std::vector<std::byte> encode_entry(const std::string& key, const CompiledModule& module);

// Nothing if the bytes are damaged, of another form, or an entry of another key.
std::optional<CompiledModule> decode_entry(const std::string& key,
                                           std::span<const std::byte> bytes);

}  // namespace afdep::compile
