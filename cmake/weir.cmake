# Options, flags and the two functions that every folder uses.

option(WEIR_TESTS "Build the unit tests" ${PROJECT_IS_TOP_LEVEL})
option(WEIR_PROGRAMS "Build the command line tool, the nginx module and the benchmarks" ON)
option(WEIR_WERROR "Treat warnings as errors" OFF)
option(WEIR_FUZZ "Build the fuzz targets (clang only)" OFF)
set(WEIR_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(WEIR_CCACHE ccache)
if(WEIR_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${WEIR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${WEIR_CCACHE})
endif()

add_library(weir_flags INTERFACE)
# No contraction: the same decisions from every compiler at every -O level.
target_compile_options(weir_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 at -O2 takes the empty std::optional for one that is read.
  # -Wuninitialized stays; the sanitizers find the rest.
  target_compile_options(weir_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(WEIR_WERROR)
  target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
endif()

# weir_library(NAME SOURCES ... USES ... [PRIVATE_USES ...])
#
# Makes the static library weir_NAME, alias weir::NAME.  What others may
# include of it lives in its folder's include/ (for core: the project's), so a
# header of a library that is not named under USES is not found.
function(weir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PRIVATE_USES" ${ARGN})
  add_library(weir_${name} STATIC ${ARG_SOURCES})
  add_library(weir::${name} ALIAS weir_${name})
  if(IS_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_include_directories(weir_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include)
  endif()
  target_include_directories(weir_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(weir_${name} PUBLIC ${ARG_USES} PRIVATE weir_flags ${ARG_PRIVATE_USES})
endfunction()

add_custom_target(tsan_tests)

# weir_test(NAME SOURCES ... USES ... [LABELS ...])
#
# One test program for a folder; ctest runs it whole (a case each would start
# thousands of processes), with WEIR_SOURCE_DIR set to the project.  Its cases
# are counted from what it writes into test-results/.
#
# Labels: `tsan` runs it under the thread sanitizer too; `e2e` runs it alone on
# the machine, after all others, and in release only.
function(weir_test name)
  if(NOT WEIR_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE weir_flags ${ARG_USES} GTest::gmock GTest::gtest_main)
  # What is tested is built as it ships; to build the tests themselves that way
  # would take as long again.
  target_compile_options(${name} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    LABELS "${ARG_LABELS}" TIMEOUT 300
    ENVIRONMENT "WEIR_SOURCE_DIR=${PROJECT_SOURCE_DIR};GTEST_OUTPUT=json:${PROJECT_BINARY_DIR}/test-results/${name}.json")
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(tsan_tests ${name})
  endif()
  if("e2e" IN_LIST ARG_LABELS)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
  endif()
endfunction()
