# Third-party libraries, each under one target name whatever the distribution calls it:
#   fmt::fmt  yaml-cpp::yaml-cpp  nlohmann_json::nlohmann_json  CLI11::CLI11  xxhash::xxhash
#   Boost::context  benchmark::benchmark  afdep_llvm (Clang and LLVM 19)
#   afdep_cuda_headers (cuda.h, nvrtc.h)

find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(CLI11 2.1 REQUIRED)

if(AFDEP_STATIC)
  # Distributions ship no libfmt.a, so a static build compiles fmt in.
  find_path(AFDEP_FMT_INCLUDE fmt/core.h REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_include_directories(fmt::fmt INTERFACE ${AFDEP_FMT_INCLUDE})
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  set(Boost_USE_STATIC_LIBS ON)
else()
  find_package(fmt 9 REQUIRED)
endif()

function(afdep_import_library target header library)
  find_path(${library}_INCLUDE ${header} REQUIRED)
  find_library(${library}_LIBRARY ${library} REQUIRED)
  add_library(${target} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(
    ${target} PROPERTIES IMPORTED_LOCATION "${${library}_LIBRARY}"
                         INTERFACE_INCLUDE_DIRECTORIES "${${library}_INCLUDE}")
endfunction()

afdep_import_library(yaml-cpp::yaml-cpp yaml-cpp/yaml.h yaml-cpp)
afdep_import_library(xxhash::xxhash xxhash.h xxhash)

if(AFDEP_EMULATOR)
  find_package(Boost 1.74 REQUIRED COMPONENTS context)
  find_package(benchmark 1.7 REQUIRED)
  set(AFDEP_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "Where LLVM and Clang 19 are installed")
  find_path(AFDEP_LLVM_INCLUDE llvm/IR/Module.h PATHS ${AFDEP_LLVM_ROOT}/include NO_DEFAULT_PATH
            REQUIRED)
  # The shared libraries: the static ones would make every link take half a minute.
  find_library(AFDEP_LLVM NAMES LLVM-19 PATHS ${AFDEP_LLVM_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
  find_library(AFDEP_CLANG_CPP NAMES clang-cpp PATHS ${AFDEP_LLVM_ROOT}/lib NO_DEFAULT_PATH
               REQUIRED)
  add_library(afdep_llvm INTERFACE)
  target_include_directories(afdep_llvm SYSTEM INTERFACE ${AFDEP_LLVM_INCLUDE})
  target_compile_definitions(afdep_llvm INTERFACE _GNU_SOURCE __STDC_CONSTANT_MACROS
                                                  __STDC_FORMAT_MACROS __STDC_LIMIT_MACROS)
  target_link_libraries(afdep_llvm INTERFACE ${AFDEP_CLANG_CPP} ${AFDEP_LLVM})
endif()

# Headers only: NVRTC and the driver are opened at run time, so that everything starts without them.
find_path(
  AFDEP_CUDA_INCLUDE nvrtc.h
  HINTS $ENV{CUDA_HOME}/include /usr/local/cuda/include
        ${CMAKE_SOURCE_DIR}/build/cuda/nvidia/cu13/include  # where ./dev unpacks NVIDIA's wheels
  REQUIRED
  DOC "Folder that holds cuda.h and nvrtc.h")
add_library(afdep_cuda_headers INTERFACE)
target_include_directories(afdep_cuda_headers SYSTEM INTERFACE ${AFDEP_CUDA_INCLUDE})
target_link_libraries(afdep_cuda_headers INTERFACE ${CMAKE_DL_LIBS})
