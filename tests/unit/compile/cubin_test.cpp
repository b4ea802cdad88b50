// Reads cubins that this file puts together byte by byte, whole and damaged. tests/compile reads
// NVRTC's.
#include "generator/compile/cubin.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace afdep::compile {
namespace {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes& bytes, T value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

void append_text(Bytes& bytes, const std::string& text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  bytes.push_back(std::byte{0});
}

struct TestSection {
  std::string name;
  std::uint32_t type = 1;
  Bytes bytes = {};
  std::uint64_t size_without_bytes = 0;  // of a section of type 8
  std::uint32_t link = 0;
};

// An ELF-64 file of machine 190: header, section contents, section headers.
Bytes elf(std::vector<TestSection> sections) {
  Bytes names = {std::byte{0}};
  std::vector<std::uint32_t> name_at = {0};
  for (const TestSection& section : sections) {
    name_at.push_back(static_cast<std::uint32_t>(names.size()));
    append_text(names, section.name);
  }
  sections.push_back({.name = "", .type = 3, .bytes = names});
  name_at.push_back(0);

  Bytes body;
  std::vector<std::uint64_t> offsets;
  for (const TestSection& section : sections) {
    offsets.push_back(64 + body.size());
    body.insert(body.end(), section.bytes.begin(), section.bytes.end());
  }
  Bytes file;
  for (const int c : {0x7f, int{'E'}, int{'L'}, int{'F'}, 2, 1, 1, 0x41}) {
    file.push_back(static_cast<std::byte>(c));
  }
  append<std::uint64_t>(file, 8);
  append<std::uint16_t>(file, 2);
  append<std::uint16_t>(file, 190);
  append<std::uint32_t>(file, 1);
  append<std::uint64_t>(file, 0);
  append<std::uint64_t>(file, 0);
  append<std::uint64_t>(file, 64 + body.size());
  append<std::uint32_t>(file, 0);
  for (const std::uint16_t half : std::initializer_list<std::uint16_t>{64, 56, 0, 64}) {
    append(file, half);
  }
  append<std::uint16_t>(file, static_cast<std::uint16_t>(sections.size() + 1));
  append<std::uint16_t>(file, static_cast<std::uint16_t>(sections.size()));
  file.insert(file.end(), body.begin(), body.end());
  file.resize(file.size() + 64);  // the null section
  for (std::size_t i = 0; i < sections.size(); ++i) {
    append<std::uint32_t>(file, name_at[i + 1]);
    append<std::uint32_t>(file, sections[i].type);
    append<std::uint64_t>(file, 0);
    append<std::uint64_t>(file, 0);
    append<std::uint64_t>(file, offsets[i]);
    append<std::uint64_t>(
        file, sections[i].type == 8 ? sections[i].size_without_bytes : sections[i].bytes.size());
    append<std::uint32_t>(file, sections[i].link);
    append<std::uint32_t>(file, 0);
    append<std::uint64_t>(file, 1);
    append<std::uint64_t>(file, 0);
  }
  return file;
}

void append_symbol(Bytes& table, std::uint32_t name, std::uint8_t info, std::uint8_t other) {
  append(table, name);
  append(table, info);
  append(table, other);
  append<std::uint16_t>(table, 1);
  append<std::uint64_t>(table, 0);
  append<std::uint64_t>(table, 0);
}

void append_attribute(Bytes& info, std::uint8_t attribute, std::uint32_t symbol,
                      std::uint32_t value) {
  append<std::uint8_t>(info, 4);
  append(info, attribute);
  append<std::uint16_t>(info, 8);
  append(info, symbol);
  append(info, value);
}

// Section 1 is the symbol table, 2 its names. Kernel "k" (symbol 1) with 40 registers, a frame of
// 16, a stack of 48 bytes and 1,224 bytes of shared memory, of which 200 are its own; device
// function "f" (symbol 2), which is no kernel.
std::vector<TestSection> sample_sections() {
  Bytes names = {std::byte{0}};
  append_text(names, "k");
  append_text(names, "f");
  Bytes symbols(24);
  append_symbol(symbols, 1, 0x12, 0x10);
  append_symbol(symbols, 3, 0x12, 0x00);
  Bytes info;
  append_attribute(info, 0x2f, 1, 40);
  append<std::uint32_t>(info, 0x00ff1b03);  // a 16-bit attribute, which is passed over
  append_attribute(info, 0x11, 1, 16);
  append_attribute(info, 0x12, 1, 48);
  append_attribute(info, 0x11, 2, 999);
  return {{.name = ".symtab", .type = 2, .bytes = symbols, .link = 2},
          {.name = ".strtab", .type = 3, .bytes = names},
          {.name = ".nv.info", .type = 0x70000000, .bytes = info},
          {.name = ".nv.shared.k", .type = 8, .size_without_bytes = 1224}};
}

std::string failure_of(const Bytes& file) {
  const auto result = read_cubin(file);
  if (result.ok()) return "read";
  EXPECT_EQ(result.diagnostics()[0].code, ErrorCode::kToolchain);
  return result.diagnostics()[0].message;
}

TEST(Cubin, ReadsKernelsAndTheirResources) {
  const auto kernels = read_cubin(elf(sample_sections()));
  ASSERT_TRUE(kernels.ok()) << to_string(kernels.diagnostics());
  EXPECT_EQ(*kernels, (std::vector<CubinKernel>{{"k", 40, 48, 200}}));
}

TEST(Cubin, AKernelWithoutASharedSectionUsesNone) {
  auto sections = sample_sections();
  sections.pop_back();
  const auto kernels = read_cubin(elf(sections));
  ASSERT_TRUE(kernels.ok());
  EXPECT_EQ(kernels->at(0).shared_bytes, 0);
}

TEST(Cubin, RefusesWhatIsNoCubin) {
  EXPECT_EQ(failure_of({}), "not a cubin: no ELF-64 header");
  Bytes host = elf(sample_sections());
  host[18] = std::byte{62};
  EXPECT_EQ(failure_of(host), "not a cubin: machine 62");
  EXPECT_EQ(failure_of(elf({})), "not a cubin: no symbol table");
  auto sections = sample_sections();
  sections[2].name = ".nv.other";
  EXPECT_EQ(failure_of(elf(sections)), "not a cubin: no .nv.info");
  sections = sample_sections();
  sections[2].bytes.resize(12);  // the registers alone
  EXPECT_EQ(failure_of(elf(sections)), "not a cubin: k has no register count or frame size");
  sections[2].bytes.resize(7);
  EXPECT_EQ(failure_of(elf(sections)), "not a cubin: form of an attribute in .nv.info");
  sections = sample_sections();
  sections[3].size_without_bytes = 1000;
  EXPECT_EQ(failure_of(elf(sections)),
            "not a cubin: .nv.shared.k has 1000 bytes, less than the reserved 1024 or too many");
}

// Under AddressSanitizer this proves that no damage leads outside the bytes.
TEST(Cubin, SurvivesEveryTruncationAndEveryDamagedByte) {
  const Bytes whole = elf(sample_sections());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(read_cubin(cut).ok()) << size;
  }
  std::size_t read = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bits : {0x01, 0x80, 0xff}) {
      Bytes damaged = whole;
      damaged[at] ^= static_cast<std::byte>(bits);
      read += read_cubin(damaged).ok() ? 1u : 0u;
    }
  }
  EXPECT_LT(read, whole.size() * 3);
}

}  // namespace
}  // namespace afdep::compile
