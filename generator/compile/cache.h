// Compiled modules on disk, by content. Why the key is what it is:
// docs/decisions/0002-cache-key.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "generator/compile/compile.h"
#include "generator/compile/module.h"
#include "runtime/support/result.h"

namespace afdep::compile {

enum class CacheMode : std::uint8_t {
  kJit,  // a miss is compiled and stored
  kAot,  // never compiles and never looks for NVRTC; a miss is E801
};

// $XDG_CACHE_HOME/afdep, or $HOME/.cache/afdep. E803 if neither variable names an absolute path.
Result<std::filesystem::path> default_cache_folder();

// What is asked for, without who compiles it: XXH3-128 of symbol, file name, source, headers, arch
// and options, as 32 hexadecimal digits.
std::string request_key(const KernelSource& source, std::string_view arch,
                        const CompileOptions& options);

// DIR/COMPILER/KEY.cubin: COMPILER is nvrtc_identity() of the library, KEY is request_key(). Safe
// for any number of threads and processes on one folder: an entry appears whole, by rename, or not
// at all; a damaged entry counts as a miss and is replaced.
class ModuleCache {
 public:
  using Compile = std::function<Result<CompiledModule>(const KernelSource&, std::string_view arch,
                                                       const CompileOptions&)>;

  // Touches nothing yet. `search` is where kJit looks for the library whose identity is in the key;
  // `compile_miss` compiles for kJit.
  ModuleCache(std::filesystem::path folder, CacheMode mode,
              NvrtcSearch search = NvrtcSearch::from_environment(), Compile compile_miss = compile);

  // The stored module, or a fresh one that is then stored. A hit takes some ten microseconds and
  // does not open NVRTC. E801: miss under kAot. E803: the folder cannot be made or written (the
  // module is not returned, so that a broken cache does not cost a compilation in every process).
  // Else as compile().
  Result<CompiledModule> get(const KernelSource& source, std::string_view arch,
                             const CompileOptions& options);

 private:
  Result<CompiledModule> get_compiled(const KernelSource& source, std::string_view arch,
                                      const std::string& key) const;

  std::filesystem::path folder_;
  CacheMode mode_;
  NvrtcSearch search_;
  Compile compile_miss_;
};

}  // namespace afdep::compile
