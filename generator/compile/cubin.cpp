#include "generator/compile/cubin.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace afdep::compile {
namespace {

static_assert(std::endian::native == std::endian::little, "cubins are little-endian");

constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kSectionSymbols = 2;
constexpr std::uint32_t kSectionNoBits = 8;
constexpr std::uint8_t kSymbolFunction = 2;
// st_other of a function that the host can launch; a device function lacks it.
constexpr std::uint8_t kOtherEntry = 0x10;

// Attribute records of .nv.info: format, attribute, then a 16-bit value or, for kFormatSized, a
// size and its bytes.
constexpr std::uint8_t kFormatSized = 4;
constexpr std::uint8_t kAttributeFrameSize = 0x11;     // {symbol, bytes}
constexpr std::uint8_t kAttributeMinStackSize = 0x12;  // {symbol, bytes}
constexpr std::uint8_t kAttributeRegisters = 0x2f;     // {symbol, count}

// From sm_90 on, static shared memory starts behind the system's part, and .nv.shared.KERNEL counts
// that part.
constexpr std::uint64_t kReservedSharedBytes = 1024;

struct ElfHeader {
  std::uint8_t ident[16];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, program_headers, section_headers;
  std::uint32_t flags;
  std::uint16_t header_size, program_header_size, program_header_count;
  std::uint16_t section_header_size, section_header_count, section_names;
};
struct SectionHeader {
  std::uint32_t name, type;
  std::uint64_t flags, address, offset, size;
  std::uint32_t link, info;
  std::uint64_t alignment, entry_size;
};
struct Symbol {
  std::uint32_t name;
  std::uint8_t info, other;
  std::uint16_t section;
  std::uint64_t value, size;
};
static_assert(sizeof(ElfHeader) == 64 && sizeof(SectionHeader) == 64 && sizeof(Symbol) == 24);

Failure damaged(std::string what) {
  return Failure(ErrorCode::kToolchain, "not a cubin: " + std::move(what),
                 "NVRTC and this reader disagree; compare its version with docs/compile.md");
}

// Bytes with bounds: every read says whether it lay inside.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
    requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::optional<T> read(std::uint64_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(T));
    return value;
  }
  [[nodiscard]] std::optional<Bytes> slice(std::uint64_t offset, std::uint64_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return std::nullopt;
    return Bytes(bytes_.subspan(offset, size));
  }
  // The zero-terminated text at the offset.
  [[nodiscard]] std::optional<std::string_view> text(std::uint64_t offset) const {
    if (offset > bytes_.size()) return std::nullopt;
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + offset,
                                bytes_.size() - offset);
    const std::size_t end = rest.find('\0');
    if (end == std::string_view::npos) return std::nullopt;
    return rest.substr(0, end);
  }
  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

struct Section {
  std::string_view name;
  SectionHeader header;
  Bytes bytes;  // empty for a section that takes no room in the file
};

// Values of one attribute by the symbol that they belong to.
using Attributes = std::map<std::pair<std::uint8_t, std::uint32_t>, std::uint32_t>;

Result<std::vector<Section>> read_sections(const Bytes& file) {
  const auto header = file.read<ElfHeader>(0);
  constexpr std::uint8_t kIdent[] = {0x7f, 'E', 'L', 'F', /*64 bits*/ 2, /*little-endian*/ 1};
  if (!header || std::memcmp(header->ident, kIdent, sizeof(kIdent)) != 0)
    return damaged("no ELF-64 header");
  if (header->machine != kMachineCuda) return damaged(fmt::format("machine {}", header->machine));
  if (header->section_header_size != sizeof(SectionHeader)) return damaged("section header size");

  std::vector<SectionHeader> headers;
  for (std::uint32_t i = 0; i < header->section_header_count; ++i) {
    // Sized well below 2^64, so the sum cannot wrap unless the file is damaged; read() then refuses
    // it.
    const auto section =
        file.read<SectionHeader>(header->section_headers + i * sizeof(SectionHeader));
    if (!section) return damaged(fmt::format("section header {} lies outside", i));
    headers.push_back(*section);
  }
  const auto bytes_of = [&](const SectionHeader& section) {
    return section.type == kSectionNoBits ? file.slice(0, 0)
                                          : file.slice(section.offset, section.size);
  };
  if (header->section_names >= headers.size()) return damaged("no section names");
  const auto names = bytes_of(headers[header->section_names]);
  if (!names) return damaged("section names lie outside");

  std::vector<Section> sections;
  for (const SectionHeader& section : headers) {
    const auto name = names->text(section.name);
    const auto bytes = bytes_of(section);
    if (!name || !bytes) return damaged(fmt::format("section {} lies outside", sections.size()));
    sections.push_back({*name, section, *bytes});
  }
  return sections;
}

Result<Attributes> read_attributes(const Bytes& info) {
  Attributes attributes;
  for (std::uint64_t at = 0; at < info.size();) {
    const auto format = info.read<std::uint8_t>(at);
    const auto attribute = info.read<std::uint8_t>(at + 1);
    const auto value = info.read<std::uint16_t>(at + 2);
    if (!value) return damaged("truncated .nv.info");
    at += 4;
    if (*format != kFormatSized) continue;
    if (*attribute == kAttributeRegisters || *attribute == kAttributeFrameSize ||
        *attribute == kAttributeMinStackSize) {
      const auto symbol = info.read<std::uint32_t>(at);
      const auto number = info.read<std::uint32_t>(at + 4);
      if (*value != 8 || !number) return damaged("form of an attribute in .nv.info");
      attributes[{*attribute, *symbol}] = *number;
    }
    at += *value;
    if (at > info.size()) return damaged("truncated .nv.info");
  }
  return attributes;
}

Result<int> shared_bytes_of(const std::vector<Section>& sections, std::string_view symbol) {
  const std::string name = fmt::format(".nv.shared.{}", symbol);
  const auto found = std::ranges::find(sections, name, &Section::name);
  if (found == sections.end()) return 0;
  const std::uint64_t size = found->header.size;
  if (size < kReservedSharedBytes || size > INT32_MAX) {
    return damaged(fmt::format("{} has {} bytes, less than the reserved {} or too many", name, size,
                               kReservedSharedBytes));
  }
  return static_cast<int>(size - kReservedSharedBytes);
}

}  // namespace

Result<std::vector<CubinKernel>> read_cubin(std::span<const std::byte> image) {
  auto sections = read_sections(Bytes(image));
  AFDEP_RETURN_IF_FAILED(sections);
  const auto symbols = std::ranges::find_if(
      *sections, [](const Section& section) { return section.header.type == kSectionSymbols; });
  if (symbols == sections->end()) return damaged("no symbol table");
  if (symbols->header.link >= sections->size()) return damaged("no symbol names");
  const Bytes& names = (*sections)[symbols->header.link].bytes;

  const auto info = std::ranges::find(*sections, std::string_view(".nv.info"), &Section::name);
  if (info == sections->end()) return damaged("no .nv.info");
  auto attributes = read_attributes(info->bytes);
  AFDEP_RETURN_IF_FAILED(attributes);

  std::vector<CubinKernel> kernels;
  for (std::uint32_t i = 0; i < symbols->bytes.size() / sizeof(Symbol); ++i) {
    const auto symbol = symbols->bytes.read<Symbol>(i * sizeof(Symbol));
    if ((symbol->info & 0xf) != kSymbolFunction || (symbol->other & kOtherEntry) == 0) continue;
    const auto name = names.text(symbol->name);
    if (!name) return damaged(fmt::format("name of symbol {} lies outside", i));
    const auto attribute = [&](std::uint8_t which) -> std::optional<int> {
      const auto found = attributes->find({which, i});
      if (found == attributes->end() || found->second > INT32_MAX) return std::nullopt;
      return static_cast<int>(found->second);
    };
    const auto registers = attribute(kAttributeRegisters);
    const auto frame = attribute(kAttributeFrameSize);
    if (!registers || !frame) {
      return damaged(fmt::format("{} has no register count or frame size", *name));
    }
    const int stack = attribute(kAttributeMinStackSize).value_or(0);
    auto shared = shared_bytes_of(*sections, *name);
    AFDEP_RETURN_IF_FAILED(shared);
    kernels.push_back({std::string(*name), *registers, std::max(*frame, stack), *shared});
  }
  return kernels;
}

}  // namespace afdep::compile
