# Declares tests and fuzz targets.

if(AFDEP_TESTS)
  enable_testing()
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# afdep_add_test(NAME spec_parse_test SOURCES a.cpp... LIBRARIES afdep_spec... [LABELS unit...])
# A GoogleTest executable; each of its cases is one ctest test, found when ctest starts. Tests run
# in the repository's root, so that they can name files such as specs/reference.yaml.
function(afdep_add_test)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;LIBRARIES;LABELS" ${ARGN})
  foreach(required NAME SOURCES)
    if(NOT arg_${required})
      message(FATAL_ERROR "afdep_add_test: ${required} is missing")
    endif()
  endforeach()
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "afdep_add_test(${arg_NAME}): unknown ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT AFDEP_TESTS)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE afdep_options ${arg_LIBRARIES} GTest::gmock GTest::gtest_main)
  gtest_discover_tests(
    ${arg_NAME} NO_PRETTY_VALUES DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 300)
endfunction()

# afdep_add_fuzzer(NAME fuzz_spec SOURCES a.cpp... LIBRARIES afdep_spec...)
# An executable that defines LLVMFuzzerTestOneInput; built by the preset "fuzz" only, whose target
# "fuzzers" is all of them.
if(AFDEP_FUZZ)
  add_custom_target(fuzzers)
endif()

function(afdep_add_fuzzer)
  cmake_parse_arguments(arg "" "NAME" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT AFDEP_FUZZ)
    return()
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_link_libraries(${arg_NAME} PRIVATE afdep_options ${arg_LIBRARIES})
  target_link_options(${arg_NAME} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers ${arg_NAME})
endfunction()
