# Libraries of the engine that another build folder holds are taken from there, after that folder was
# brought up to date: the Python package then costs its own sources alone. Both builds have the flags
# of a release for the CPU; a folder that is none is passed over.
set(built_in "")
if(FORETOKEN_ENGINE_BUILD AND NOT FORETOKEN_CUDA AND NOT FORETOKEN_TESTS AND NOT FORETOKEN_SANITIZE)
  get_filename_component(built_in ${FORETOKEN_ENGINE_BUILD} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
  if(EXISTS ${built_in}/CMakeCache.txt AND EXISTS ${built_in}/libft_serve.a)
    load_cache(${built_in} READ_WITH_PREFIX built_
      CMAKE_BUILD_TYPE CMAKE_HOME_DIRECTORY CMAKE_CXX_COMPILER CMAKE_CXX_FLAGS FORETOKEN_CARGO_TARGET_DIR
      FORETOKEN_TEXT_LIB FORETOKEN_SANITIZE)
    # c++ and g++ are names of one program, of which pip takes the second.
    file(REAL_PATH "${built_CMAKE_CXX_COMPILER}" built_compiler)
    file(REAL_PATH "${CMAKE_CXX_COMPILER}" own_compiler)
  endif()
  if(NOT built_CMAKE_HOME_DIRECTORY STREQUAL PROJECT_SOURCE_DIR OR built_FORETOKEN_SANITIZE
      OR NOT built_CMAKE_BUILD_TYPE STREQUAL CMAKE_BUILD_TYPE
      OR NOT built_compiler STREQUAL own_compiler
      OR NOT "${built_CMAKE_CXX_FLAGS}" STREQUAL "${CMAKE_CXX_FLAGS}")
    message(STATUS "${built_in} is no release of this tree by ${CMAKE_CXX_COMPILER}: the engine is compiled here")
    set(built_in "")
  endif()
endif()
set(compiled_scope PUBLIC)
if(built_in)
  set(compiled_scope INTERFACE)
  set(text_lib ${built_FORETOKEN_TEXT_LIB})
  if(NOT text_lib)
    if(NOT built_FORETOKEN_CARGO_TARGET_DIR)
      set(built_FORETOKEN_CARGO_TARGET_DIR ${built_in}/cargo)
    endif()
    set(text_lib ${built_FORETOKEN_CARGO_TARGET_DIR}/release/libforetoken_text.a)
  endif()
  set(FORETOKEN_TEXT_LIB ${text_lib})
  message(STATUS "The engine's libraries are those of ${built_in}")
  add_custom_target(engine_build
    COMMAND ${CMAKE_COMMAND} --build ${built_in} --target ft_engine ft_serve ft_options
    COMMENT "Bringing ${built_in} up to date")
endif()

# ft_built_library(<folder>): ft_<folder> as built_in holds it.
function(ft_built_library folder)
  add_library(ft_${folder} STATIC IMPORTED GLOBAL)
  set_target_properties(ft_${folder} PROPERTIES IMPORTED_LOCATION ${built_in}/libft_${folder}.a)
  add_dependencies(ft_${folder} engine_build)
endfunction()

# Where most files log or format.
set(folders_that_format base engine group http hub model net otlp serve text)
# What runs for less time than it takes to compile: under a sanitizer -O0 takes two fifths of -O1's time, and
# where a release is built for its tests alone GCC's -O1 takes half of -O2's. The others, which go over values or are
# called many times over by tests, would run longer by more.
# The presets turn it off again where it is not asked for: what is measured is built as it is shipped.
option(FORETOKEN_PLAIN_PARTS "Optimise less what runs little, in a build for tests" OFF)
set(folders_that_run_little bench chat compat config convert engine gguf http hub model net otlp serve text)
set(options_of_what_runs_little "")
if(FORETOKEN_SANITIZE)
  set(options_of_what_runs_little -O0)
elseif(FORETOKEN_PLAIN_PARTS)
  set(options_of_what_runs_little $<$<CONFIG:Release>:-O1>)
endif()

# ft_library(<folder> <dependency>...): static library ft_<folder> from src/<folder> and its rooms, but
# for cuda/ and mpi/, which are plug-ins. A folder without sources becomes an interface library, so
# that it can be linked.
function(ft_library folder)
  set(root ${PROJECT_SOURCE_DIR}/src/${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${root}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(cuda|mpi)/")
  if(NOT sources)
    add_library(ft_${folder} INTERFACE)
    set(scope INTERFACE)
  elseif(built_in)
    ft_built_library(${folder})
    set(scope INTERFACE)
  else()
    add_library(ft_${folder} STATIC ${sources})
    target_link_libraries(ft_${folder} PRIVATE foretoken_warnings)
    ft_isa_flags(${sources})
    if(FORETOKEN_SANITIZE AND folder IN_LIST folders_that_format)
      target_compile_options(ft_${folder} PRIVATE "SHELL:-include '${PROJECT_SOURCE_DIR}/cmake/fmt_once.h'")
    endif()
    if(FORETOKEN_SANITIZE AND folder STREQUAL base)
      target_sources(ft_base PRIVATE ${PROJECT_SOURCE_DIR}/cmake/fmt_once.cpp)
    endif()
    if(folder IN_LIST folders_that_run_little)
      target_compile_options(ft_${folder} PRIVATE ${options_of_what_runs_little})
    endif()
    set(scope PUBLIC)
  endif()
  target_include_directories(ft_${folder} ${scope}
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  foreach(dependency IN LISTS ARGN)
    if(NOT dependency STREQUAL "foretoken_text_crate" OR TARGET foretoken_text_crate)
      target_link_libraries(ft_${folder} ${scope} ${dependency})
    endif()
  endforeach()
endfunction()

# A source whose name ends in _avx2, _avxvnni, _amx or _avx512... is compiled for that instruction set; the caller
# dispatches at run time. Such a file includes intrinsics and plain types only, no inline library code.
# A sanitizer's build is run where it was made, so that code for another processor is compiled there as it is: a
# sanitizer would multiply the time for what never runs.
set(isa_flags_of_avx2 -mavx2 -mfma -mf16c)
set(isa_flags_of_avxvnni -mavx2 -mavxvnni -mfma -mf16c)
set(isa_flags_of_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c)
set(isa_flags_of_avx512vnni ${isa_flags_of_avx512} -mavx512vnni)
set(isa_flags_of_avx512bf16 ${isa_flags_of_avx512} -mavx512bf16)
set(isa_flags_of_amx -mavx512f -mamx-tile -mamx-bf16)
# Their names in /proc/cpuinfo.
set(processor_flag_of_avx2 avx2)
set(processor_flag_of_avxvnni avx_vnni)
set(processor_flag_of_avx512 avx512f)
set(processor_flag_of_avx512vnni avx512_vnni)
set(processor_flag_of_avx512bf16 avx512_bf16)
set(processor_flag_of_amx amx_bf16)
set(processor_flags "")
if(EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo processor_flags REGEX "^flags" LIMIT_COUNT 1)
endif()
function(ft_isa_flags)
  foreach(source IN LISTS ARGN)
    if(NOT source MATCHES "_(avx2|avxvnni|avx512|avx512vnni|avx512bf16|amx)\\.cpp$")
      continue()
    endif()
    set(isa ${CMAKE_MATCH_1})
    set(flags ${isa_flags_of_${isa}})
    if(FORETOKEN_SANITIZE AND NOT "${processor_flags} " MATCHES " ${processor_flag_of_${isa}} ")
      list(APPEND flags -fno-sanitize=all)
    elseif("undefined" IN_LIST FORETOKEN_SANITIZE)
      # Of every access to memory; what AddressSanitizer says of them is enough for intrinsics.
      list(APPEND flags -fno-sanitize=null,alignment,pointer-overflow)
    endif()
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${flags}")
  endforeach()
endfunction()

# ft_executable(<name> <folder> <dependency>...): program from <folder> and its rooms, if they have
# sources; those of ft_options are linked. Includes are relative to the root of the tree
# ("apps/options/engine_options.h").
function(ft_executable name folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(REMOVE_ITEM sources ${option_sources})
  if(sources)
    add_executable(${name} ${sources})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
    target_link_libraries(${name} PRIVATE foretoken_warnings ${ARGN})
    target_compile_options(${name} PRIVATE ${options_of_what_runs_little})
  endif()
endfunction()
