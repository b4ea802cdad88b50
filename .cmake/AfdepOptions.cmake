# Language, warnings, sanitizers, linker and compiler cache of every target.

option(AFDEP_EMULATOR "Build the CPU emulator and what needs it (Clang and LLVM 19)" ON)
option(AFDEP_TESTS "Build the tests" ON)
option(AFDEP_FUZZ "Build the fuzz targets (needs Clang)" OFF)
option(AFDEP_STATIC "Link everything but the C library statically" OFF)
set(AFDEP_SANITIZE "" CACHE STRING "Sanitizers as the compiler names them, e.g. address,undefined")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()

# Invariants are checked in every build: NDEBUG would drop them in the LLVM and Boost headers.
foreach(type RELEASE RELWITHDEBINFO)
  string(REPLACE "-DNDEBUG" "" CMAKE_CXX_FLAGS_${type} "${CMAKE_CXX_FLAGS_${type}}")
endforeach()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(AFDEP_CCACHE ccache)
  if(AFDEP_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${AFDEP_CCACHE})
  endif()
endif()

# Every target links this PRIVATE.
add_library(afdep_options INTERFACE)
target_compile_options(
  afdep_options
  INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror
            # No machine path may land in a binary or an assertion message.
            -ffile-prefix-map=${CMAKE_SOURCE_DIR}/= -ffile-prefix-map=${CMAKE_BINARY_DIR}/=
            # GCC 12 reports copies inside std::string that cannot happen (GCC bug 105651) and, with
            # -O3, members of temporaries as uninitialized and overflows inside fmt.
            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-maybe-uninitialized>
            $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overflow>)
target_include_directories(afdep_options INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(
  afdep_options INTERFACE AFDEP_VERSION="${PROJECT_VERSION}"
                          AFDEP_HAS_EMULATOR=$<BOOL:${AFDEP_EMULATOR}>)

if(AFDEP_SANITIZE)
  add_compile_options(-fsanitize=${AFDEP_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${AFDEP_SANITIZE})
endif()
if(AFDEP_FUZZ)
  # Coverage feedback from the code under test; the fuzz targets alone link libFuzzer's main.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(AFDEP_STATIC)
  add_link_options(-static-libgcc -static-libstdc++ -Wl,--gc-sections)
  add_compile_options(-ffunction-sections -fdata-sections)
endif()

# A fast linker, if there is one: linking dominates an incremental build.
include(CheckLinkerFlag)
set(afdep_lld -fuse-ld=lld -B/usr/lib/llvm-19/bin)
check_linker_flag(CXX "-fuse-ld=mold" AFDEP_HAS_MOLD)
check_linker_flag(CXX "${afdep_lld}" AFDEP_HAS_LLD)
if(AFDEP_HAS_MOLD)
  add_link_options(-fuse-ld=mold)
elseif(AFDEP_HAS_LLD)
  add_link_options(${afdep_lld})
endif()
