# Headers that most sources include, parsed once for all targets that are compiled alike, for builds that
# are made once and whole: a third of what clang takes for a source that is not optimised. A compiler
# cache does not know such sources again. GCC takes as long to read the headers back as to parse them.
option(FORETOKEN_PRECOMPILE "Parse the headers that most sources include once (clang)" OFF)
if(NOT FORETOKEN_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  return()
endif()
set(common_headers <algorithm> <array> <atomic> <chrono> <cmath> <cstdint> <cstring> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread>
  <unordered_map> <utility> <variant> <vector> <nlohmann/json.hpp> <spdlog/fmt/fmt.h>)
if(FORETOKEN_SANITIZE)
  list(PREPEND common_headers ${PROJECT_SOURCE_DIR}/cmake/fmt_once.h)
endif()
file(WRITE ${PROJECT_BINARY_DIR}/precompiled.cpp "")

# ft_precompiled(<name> HEADERS <header>... OPTIONS <option>... [LIBRARIES <library>...]): holds the headers
# for targets that are compiled with the options.
function(ft_precompiled name)
  cmake_parse_arguments(arg "" "" "HEADERS;OPTIONS;LIBRARIES" ${ARGN})
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
  target_link_libraries(${name} PRIVATE foretoken_warnings spdlog::spdlog nlohmann_json::nlohmann_json
    ${arg_LIBRARIES})
  target_compile_options(${name} PRIVATE ${arg_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

# ft_precompile(<kind> <target>...): kind is library, program or test. Sources with options of their own
# are left out.
function(ft_precompile kind)
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "INTERFACE_LIBRARY" OR type STREQUAL "UNKNOWN_LIBRARY")
      continue()
    endif()
    set(headers precompiled_${kind})
    set(options ${options_of_${kind}})
    get_target_property(own ${target} COMPILE_OPTIONS)
    if("-O0" IN_LIST own)
      string(APPEND headers _plain)
      list(APPEND options -O0)
    endif()
    if(NOT TARGET ${headers})
      ft_precompiled(${headers} HEADERS ${common_headers} ${headers_of_${kind}} OPTIONS ${options}
        LIBRARIES ${libraries_of_${kind}})
    endif()
    target_precompile_headers(${target} REUSE_FROM ${headers})
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_source_file_property(options_of_source ${source} COMPILE_OPTIONS)
      if(options_of_source)
        set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
      endif()
    endforeach()
  endforeach()
endfunction()

# Called at the end, when all targets are known.
function(ft_precompile_targets)
  set(options_of_library "")
  # An executable's code is placed otherwise than a library's.
  set(options_of_program -fPIE)
  set(headers_of_program <CLI/CLI.hpp>)
  set(libraries_of_program CLI11::CLI11)
  set(options_of_test -fPIE ${test_compile_options})
  set(headers_of_test <gtest/gtest.h>)
  set(libraries_of_test GTest::gtest)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  set(libraries ${targets})
  list(FILTER libraries INCLUDE REGEX "^ft_")
  set(tests ${test_folders})
  list(TRANSFORM tests PREPEND test_)
  ft_precompile(library ${libraries})
  ft_precompile(program foretoken)
  ft_precompile(test ${tests})
endfunction()
