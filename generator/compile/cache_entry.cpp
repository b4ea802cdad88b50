#include "generator/compile/cache_entry.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include <xxhash.h>

#include "runtime/support/check.h"

namespace afdep::compile {
namespace {

static_assert(std::endian::native == std::endian::little, "entries are little-endian");

constexpr char kMagic[8] = {'A', 'F', 'D', 'E', 'P', 'M', 'O', 'D'};
constexpr std::uint32_t kForm = 1;
constexpr std::size_t kKeySize = 32;

// The checksum covers everything behind itself.
struct EntryHeader {
  char magic[8];
  std::uint32_t form;
  std::uint32_t reserved;
  XXH128_canonical_t checksum;
  char key[kKeySize];
  std::int32_t registers, spill_bytes, local_bytes, shared_bytes;
  std::uint32_t symbol_size, arch_size;
  std::uint64_t image_size;
};
static_assert(sizeof(EntryHeader) == 96);
constexpr std::size_t kChecked = offsetof(EntryHeader, key);

XXH128_canonical_t checksum_of(std::span<const std::byte> entry) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical,
                           XXH3_128bits(entry.data() + kChecked, entry.size() - kChecked));
  return canonical;
}

}  // namespace

std::vector<std::byte> encode_entry(const std::string& key, const CompiledModule& module) {
  AFDEP_CHECK(key.size() == kKeySize, "cache key of the wrong length: " + key);
  EntryHeader header{};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  header.form = kForm;
  std::memcpy(header.key, key.data(), kKeySize);
  header.registers = module.registers;
  header.spill_bytes = module.spill_bytes;
  header.local_bytes = module.local_bytes;
  header.shared_bytes = module.shared_bytes;
  header.symbol_size = static_cast<std::uint32_t>(module.symbol.size());
  header.arch_size = static_cast<std::uint32_t>(module.arch.size());
  header.image_size = module.image.size();

  std::vector<std::byte> entry;
  const auto append = [&entry](const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    entry.insert(entry.end(), bytes, bytes + size);
  };
  append(&header, sizeof(header));
  append(module.symbol.data(), module.symbol.size());
  append(module.arch.data(), module.arch.size());
  append(module.image.data(), module.image.size());
  const XXH128_canonical_t checksum = checksum_of(entry);
  std::memcpy(entry.data() + offsetof(EntryHeader, checksum), &checksum, sizeof(checksum));
  return entry;
}

std::optional<CompiledModule> decode_entry(const std::string& key,
                                           std::span<const std::byte> bytes) {
  EntryHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const XXH128_canonical_t checksum = checksum_of(bytes);
  if (std::memcmp(header.magic, kMagic, sizeof(kMagic)) != 0 || header.form != kForm ||
      std::memcmp(&header.checksum, &checksum, sizeof(checksum)) != 0 || key.size() != kKeySize ||
      std::memcmp(header.key, key.data(), kKeySize) != 0) {
    return std::nullopt;
  }
  const std::uint64_t texts = std::uint64_t{header.symbol_size} + header.arch_size;
  const std::uint64_t rest = bytes.size() - sizeof(header);
  if (texts > rest || rest - texts != header.image_size) return std::nullopt;

  const auto* text = reinterpret_cast<const char*>(bytes.data() + sizeof(header));
  const auto image = bytes.subspan(sizeof(header) + texts);
  return CompiledModule{.symbol = std::string(text, header.symbol_size),
                        .arch = std::string(text + header.symbol_size, header.arch_size),
                        .image = {image.begin(), image.end()},
                        .log = {},
                        .registers = header.registers,
                        .spill_bytes = header.spill_bytes,
                        .local_bytes = header.local_bytes,
                        .shared_bytes = header.shared_bytes};
}

}  // namespace afdep::compile
