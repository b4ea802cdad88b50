#include "generator/compile/nvrtc_library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <nvrtc.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <xxhash.h>

#include "generator/compile/module.h"

namespace afdep::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRemedy =
    "install the CUDA toolkit 13 or NVIDIA's wheel nvidia-cuda-nvrtc, or name the library in "
    "AFDEP_NVRTC";

fs::path environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? fs::path() : fs::path(value);
}

// The folder of the executable, or of the shared object if this code is inside one (the Python
// module).
fs::path own_folder() {
  Dl_info info{};
  std::error_code ignored;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) != 0 && info.dli_fname != nullptr &&
      info.dli_fname[0] == '/') {
    return fs::path(info.dli_fname).parent_path();
  }
  return fs::read_symlink("/proc/self/exe", ignored).parent_path();
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// What the dynamic linker finds under the plain name: a library that is already in the process, or
// one that only its cache knows. Unlike the other places this opens the library.
fs::path find_by_soname() {
  void* handle = dlopen(std::string(kNvrtcSoname).c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return {};
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return {};
  return map->l_name;
}

std::string hex(const std::uint8_t* bytes, std::size_t size) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

template <typename T>
bool read_at(std::ifstream& file, std::uint64_t offset, T* out, std::size_t count = 1) {
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(sizeof(T) * count));
  return file.good();
}

// Empty if a note segment holds no build id.
std::string build_id_in(const std::vector<std::uint8_t>& notes) {
  for (std::size_t at = 0; notes.size() - at >= sizeof(Elf64_Nhdr);) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data() + at, sizeof(note));
    const std::size_t name = at + sizeof(note);
    const std::size_t description = name + ((std::size_t{note.n_namesz} + 3) & ~std::size_t{3});
    const std::size_t end = description + ((std::size_t{note.n_descsz} + 3) & ~std::size_t{3});
    if (end > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(notes.data() + name, "GNU", 4) == 0 && note.n_descsz >= 8) {
      return hex(notes.data() + description, note.n_descsz);
    }
    at = end;
  }
  return {};
}

std::string hash_of(std::ifstream& file) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> chunk(std::size_t{1} << 20);
  file.clear();
  file.seekg(0);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    XXH3_128bits_update(state.get(), chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

NvrtcSearch NvrtcSearch::from_environment() {
  NvrtcSearch search;
  search.override_file = environment("AFDEP_NVRTC");
  search.program_folder = own_folder();
  search.cuda_home = environment("CUDA_HOME");
  search.library_folders = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
  std::istringstream paths(environment("LD_LIBRARY_PATH").string());
  for (std::string path; std::getline(paths, path, ':');) {
    if (!path.empty()) search.library_folders.emplace_back(path);
  }
  search.library_folders.insert(search.library_folders.end(),
                                {"/usr/lib/x86_64-linux-gnu", "/usr/lib64"});
  return search;
}

Result<fs::path> locate_nvrtc(const NvrtcSearch& search) {
  if (!search.override_file.empty()) {
    if (is_file(search.override_file)) return search.override_file;
    return Failure(ErrorCode::kToolchain,
                   fmt::format("AFDEP_NVRTC = {} is not a file", search.override_file.string()),
                   fmt::format("name the file {} or unset it", kNvrtcSoname));
  }
  std::vector<fs::path> folders;
  if (!search.program_folder.empty()) {
    folders.push_back(search.program_folder / "../lib");
    // Where ./dev unpacks NVIDIA's wheels, seen from a program in build/PRESET/bin.
    folders.push_back(search.program_folder / "../../cuda/nvidia/cu13/lib");
  }
  if (!search.cuda_home.empty()) {
    folders.push_back(search.cuda_home / "lib64");
    folders.push_back(search.cuda_home / "lib");
  }
  folders.insert(folders.end(), search.library_folders.begin(), search.library_folders.end());
  std::string searched;
  for (const fs::path& folder : folders) {
    const fs::path file = folder / kNvrtcSoname;
    if (is_file(file)) return file;
    searched += fmt::format(" {}", folder.lexically_normal().string());
  }
  if (fs::path file = find_by_soname(); !file.empty()) return file;
  return Failure(
      ErrorCode::kToolchain,
      fmt::format("{} found neither by the dynamic linker nor in:{}", kNvrtcSoname, searched),
      std::string(kRemedy));
}

Result<std::string> nvrtc_identity(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file || !read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) {
    return Failure(ErrorCode::kToolchain,
                   fmt::format("{} cannot be read or is no 64-bit shared library", path.string()),
                   std::string(kRemedy));
  }
  constexpr std::size_t kMaxNotes = 1 << 16;
  for (std::uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!read_at(file, header.e_phoff + i * sizeof(segment), &segment)) break;
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNotes) continue;
    std::vector<std::uint8_t> notes(segment.p_filesz);
    if (!read_at(file, segment.p_offset, notes.data(), notes.size())) break;
    if (std::string id = build_id_in(notes); !id.empty()) return id;
  }
  return hash_of(file);
}

struct NvrtcLibrary::Functions {
  decltype(&nvrtcVersion) version = nullptr;
  decltype(&nvrtcGetErrorString) error_string = nullptr;
  decltype(&nvrtcGetNumSupportedArchs) arch_count = nullptr;
  decltype(&nvrtcGetSupportedArchs) arches = nullptr;
  decltype(&nvrtcCreateProgram) create = nullptr;
  decltype(&nvrtcDestroyProgram) destroy = nullptr;
  decltype(&nvrtcCompileProgram) compile = nullptr;
  decltype(&nvrtcGetProgramLogSize) log_size = nullptr;
  decltype(&nvrtcGetProgramLog) log = nullptr;
  decltype(&nvrtcGetCUBINSize) cubin_size = nullptr;
  decltype(&nvrtcGetCUBIN) cubin = nullptr;
};

Result<std::shared_ptr<const NvrtcLibrary>> NvrtcLibrary::open(const fs::path& file) {
  const auto failed = [&](const std::string& why) {
    return Failure(ErrorCode::kToolchain, fmt::format("{}: {}", file.string(), why),
                   std::string(kRemedy));
  };
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* error = dlerror();
    return failed(error != nullptr ? error : "cannot be opened");
  }
  Functions functions;
  const char* missing = nullptr;
  const auto bind = [&]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (function == nullptr) missing = name;
  };
  bind(functions.version, "nvrtcVersion");
  bind(functions.error_string, "nvrtcGetErrorString");
  bind(functions.arch_count, "nvrtcGetNumSupportedArchs");
  bind(functions.arches, "nvrtcGetSupportedArchs");
  bind(functions.create, "nvrtcCreateProgram");
  bind(functions.destroy, "nvrtcDestroyProgram");
  bind(functions.compile, "nvrtcCompileProgram");
  bind(functions.log_size, "nvrtcGetProgramLogSize");
  bind(functions.log, "nvrtcGetProgramLog");
  bind(functions.cubin_size, "nvrtcGetCUBINSize");
  bind(functions.cubin, "nvrtcGetCUBIN");
  if (missing != nullptr) return failed(fmt::format("has no function {}", missing));

  int major = 0;
  int minor = 0;
  int count = 0;
  if (functions.version(&major, &minor) != NVRTC_SUCCESS ||
      functions.arch_count(&count) != NVRTC_SUCCESS || count <= 0) {
    return failed("does not tell its version");
  }
  // NVRTC opens its built-ins by their plain name, which the dynamic linker looks for in its own
  // places only. Opened here from beside the library, that name is already in the process.
  const fs::path builtins =
      file.parent_path() / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
  if (is_file(builtins) && dlopen(builtins.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const char* error = dlerror();
    return failed(error != nullptr ? error : fmt::format("cannot open {}", builtins.string()));
  }
  std::vector<int> arches(static_cast<std::size_t>(count));
  if (functions.arches(arches.data()) != NVRTC_SUCCESS || arches.back() < 100) {
    return failed(fmt::format("NVRTC {}.{} does not compile for sm_100a", major, minor));
  }
  std::shared_ptr<NvrtcLibrary> library(new NvrtcLibrary());
  library->functions_ = std::make_shared<const Functions>(functions);
  library->version_ = fmt::format("{}.{}", major, minor);
  return std::shared_ptr<const NvrtcLibrary>(std::move(library));
}

Result<NvrtcLibrary::Output> NvrtcLibrary::compile(const std::string& file_name,
                                                   const std::string& text,
                                                   const std::vector<Header>& headers,
                                                   const std::vector<std::string>& options) const {
  const Functions& nvrtc = *functions_;
  const auto failed = [&](const char* call, nvrtcResult result) {
    return Failure(ErrorCode::kToolchain,
                   fmt::format("{}: {} failed: {}", file_name, call, nvrtc.error_string(result)),
                   "an out-of-memory failure passes when memory is free again; report any other");
  };
  std::vector<const char*> header_texts;
  std::vector<const char*> header_names;
  for (const Header& header : headers) {
    header_texts.push_back(header.text.c_str());
    header_names.push_back(header.name.c_str());
  }
  std::vector<const char*> option_texts;
  for (const std::string& option : options) option_texts.push_back(option.c_str());

  nvrtcProgram program = nullptr;
  nvrtcResult result =
      nvrtc.create(&program, text.c_str(), file_name.c_str(), static_cast<int>(headers.size()),
                   header_texts.data(), header_names.data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcCreateProgram", result);
  const auto destroy = [&nvrtc](nvrtcProgram owned) { nvrtc.destroy(&owned); };
  const std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, decltype(destroy)> owner(program,
                                                                                      destroy);

  const nvrtcResult compiled =
      nvrtc.compile(program, static_cast<int>(option_texts.size()), option_texts.data());
  Output output;
  output.compiled = compiled == NVRTC_SUCCESS;
  if (!output.compiled) output.error = nvrtc.error_string(compiled);
  std::size_t size = 0;
  result = nvrtc.log_size(program, &size);
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetProgramLogSize", result);
  output.log.resize(size);
  result = nvrtc.log(program, output.log.data());
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetProgramLog", result);
  while (output.log.ends_with('\0')) output.log.pop_back();
  if (!output.compiled) return output;

  result = nvrtc.cubin_size(program, &size);
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetCUBINSize", result);
  output.cubin.resize(size);
  result = nvrtc.cubin(program, reinterpret_cast<char*>(output.cubin.data()));
  if (result != NVRTC_SUCCESS) return failed("nvrtcGetCUBIN", result);
  return output;
}

}  // namespace afdep::compile
