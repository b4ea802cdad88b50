// NVIDIA's runtime compiler, opened when the first kernel has to be compiled. Only
// nvrtc_library.cpp sees nvrtc.h.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/support/result.h"

namespace afdep::compile {

// Where to look for the library, in this order. Empty members are skipped.
struct NvrtcSearch {
  std::filesystem::path override_file;   // $AFDEP_NVRTC: this file or none
  std::filesystem::path program_folder;  // of the program or shared object that holds this code
  std::filesystem::path cuda_home;       // $CUDA_HOME
  std::vector<std::filesystem::path>
      library_folders;  // /usr/local/cuda, $LD_LIBRARY_PATH, the system's

  static NvrtcSearch from_environment();
};

inline constexpr std::string_view kNvrtcSoname = "libnvrtc.so.13";

// The library's file without opening it. E805 with the places searched if there is none.
Result<std::filesystem::path> locate_nvrtc(const NvrtcSearch& search);

// Names the exact library, on any machine and at any path: its GNU build id in hexadecimal. Costs
// one short read. A library without one is named by a hash of its bytes. E805 if the file cannot be
// read or is no ELF file.
Result<std::string> nvrtc_identity(const std::filesystem::path& file);

// A file that a source may include by this name.
struct Header {
  std::string name;
  std::string text;
};

// Thread-safe. Never unloaded: NVRTC keeps threads and handlers of its own.
class NvrtcLibrary {
 public:
  // E805 if the file cannot be opened, or lacks a function or the support for the arches of
  // supported_arches().
  static Result<std::shared_ptr<const NvrtcLibrary>> open(const std::filesystem::path& file);

  struct Output {
    bool compiled = false;
    std::string error;             // NVRTC's name of the failure; empty if compiled
    std::string log;               // as NVRTC wrote it, without its zero byte
    std::vector<std::byte> cubin;  // empty unless compiled
  };
  // `file_name` appears in messages. E805 only if NVRTC itself fails; a source that does not
  // compile is an Output.
  [[nodiscard]] Result<Output> compile(const std::string& file_name, const std::string& text,
                                       const std::vector<Header>& headers,
                                       const std::vector<std::string>& options) const;

  [[nodiscard]] const std::string& version() const { return version_; }  // "13.0"

 private:
  struct Functions;
  NvrtcLibrary() = default;

  std::shared_ptr<const Functions> functions_;
  std::string version_;
};

}  // namespace afdep::compile
