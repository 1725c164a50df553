# Language level, warnings, optimisation and sanitizers for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Programs, tests and the CUDA plug-in lie beside each other, where the plug-in is looked for.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")

# Paths of the checkout are relative for the cache, so that several checkouts share what they have compiled.
find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${launcher})
endif()

# Tests are many programs with one library: mold links them in a fraction of the time.
include(CheckLinkerFlag)
check_linker_flag(CXX -fuse-ld=mold FORETOKEN_HAS_MOLD)
if(FORETOKEN_HAS_MOLD)
  add_link_options($<$<LINK_LANGUAGE:CXX>:-fuse-ld=mold>)
endif()

# Contraction is off everywhere: a fused multiply-add is written where it is meant, so that equal
# sources give equal bits at every optimisation level.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)

# An interface target, so that third-party code compiled here would not inherit the warnings.
# A sanitizer's build leaves them to the others: looking for them takes a tenth of its time.
add_library(foretoken_warnings INTERFACE)
if(NOT FORETOKEN_SANITIZE)
  target_compile_options(foretoken_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow>)
else()
  # clang tells that libstdc++'s std::stable_sort calls what libstdc++ deprecates.
  target_compile_options(foretoken_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()
if(FORETOKEN_WERROR)
  target_compile_options(foretoken_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()

if(FORETOKEN_SANITIZE)
  string(REPLACE ";" "," sanitizers "${FORETOKEN_SANITIZE}")
  # -O1 keeps the whole suite affordable; -g1 is enough for file and line in reports.
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  set(CMAKE_CXX_FLAGS_${build_type} "-O1 -g1")
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${sanitizers}>
    $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>)
  if("undefined" IN_LIST FORETOKEN_SANITIZE)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>)
    # Accesses beyond an object of known size are found by AddressSanitizer, too.
    if("address" IN_LIST FORETOKEN_SANITIZE)
      add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=object-size>)
    endif()
  endif()
  add_link_options(-fsanitize=${sanitizers})
endif()
