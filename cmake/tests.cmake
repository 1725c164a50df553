# One binary test_<folder> from all sources of each tests/<folder>, its rooms included, that has a
# *_test.cpp; tests/support is linked to all.
enable_testing()
find_package(GTest REQUIRED)

set(test_libraries ft_engine ft_draft ft_sched ft_dialled)
# The folders whose tests see the server's layers, and those that run the program: the others build
# without them.
set(test_libraries_serve ft_serve ft_http ft_chat)
set(test_libraries_apps ft_serve ft_http ft_chat test_fake_server)
set(test_libraries_attention ft_attention test_test_device)
set(test_libraries_base ft_base)
set(test_libraries_bench ft_bench test_fake_server)
set(test_libraries_chat ft_chat)
set(test_libraries_compat ft_compat)
set(test_libraries_config ft_config)
set(test_libraries_conformance ft_convert)
set(test_libraries_convert ft_convert)
set(test_libraries_device ft_kernels test_test_device)
set(test_libraries_gguf ft_gguf)
set(test_libraries_group ft_group)
set(test_libraries_http ft_http)
set(test_libraries_hub ft_hub test_hub_server)
set(test_libraries_kernels ft_kernels test_step_data test_test_device test_thinning)
set(test_libraries_kv ft_kv)
set(test_libraries_model ft_dialled ft_model test_test_device)
set(test_libraries_net ft_net ft_http test_fake_server)
set(test_libraries_otlp ft_otlp test_fake_server)
set(test_libraries_sched ft_sched)
set(test_libraries_spec ft_spec ft_sched)
set(test_libraries_text ft_text)
set(folders_of_the_program apps)
# Folders below the engine, whose tests build without it.
set(folders_without_engine attention base bench compat config convert device gguf group http hub kernels kv model net
  otlp sched spec text)
# A file of tests/support, for those that build with it alone.
function(ft_test_part name)
  add_library(test_${name} STATIC ${PROJECT_SOURCE_DIR}/tests/support/${name}.cpp)
  target_link_libraries(test_${name} PUBLIC ${ARGN} GTest::gtest PRIVATE foretoken_warnings)
  target_include_directories(test_${name} PUBLIC ${PROJECT_SOURCE_DIR}/tests)
endfunction()
ft_test_part(folders)
target_compile_definitions(test_folders PRIVATE
  FORETOKEN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" FORETOKEN_BINARY_DIR="${PROJECT_BINARY_DIR}")
ft_test_part(fake_server)
ft_test_part(hub_server ft_hub)
ft_test_part(test_device ft_kernels)
ft_test_part(step_data ft_kernels test_test_device)
ft_test_part(thinning)
ft_test_part(dialled_set ${test_libraries})
list(PREPEND test_libraries test_dialled_set test_hub_server test_step_data test_test_device test_thinning)

file(GLOB_RECURSE test_folders CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/tests
  ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
list(TRANSFORM test_folders REPLACE "/.*" "")
list(REMOVE_DUPLICATES test_folders)

# Tests are compiled for one run: -O1 takes three quarters of -O2's time. Undefined behaviour is looked
# for in the sources of the engine; in the tests themselves it would double what a sanitizer compiles.
# GCC 12 warns falsely about coroutines at -O1.
set(test_compile_options $<$<CONFIG:Release>:-O1> -Wno-mismatched-new-delete)
if("undefined" IN_LIST FORETOKEN_SANITIZE)
  list(APPEND test_compile_options -fno-sanitize=undefined)
endif()

# Tests that take longer to compile than to run are not optimised where they are compiled for a single run:
# -O0 takes a third of -O1's time of clang, four fifths of GCC's. The others would run longer by more than that.
option(FORETOKEN_PLAIN_TESTS "Compile most tests without optimisation, as under a sanitizer" OFF)
set(folders_of_short_tests apps base chat compat config conformance convert device draft engine gguf group
  http hub model net otlp sched serve spec text)

foreach(folder IN LISTS test_folders)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/data/")
  add_executable(test_${folder} ${sources})
  if(NOT folder IN_LIST folders_without_engine)
    target_link_libraries(test_${folder} PRIVATE ${test_libraries})
  endif()
  target_link_libraries(test_${folder} PRIVATE foretoken_warnings ${test_libraries_${folder}}
    test_folders GTest::gtest_main)
  target_include_directories(test_${folder} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(test_${folder} PRIVATE ${test_compile_options})
  if((FORETOKEN_SANITIZE OR FORETOKEN_PLAIN_TESTS) AND folder IN_LIST folders_of_short_tests)
    target_compile_options(test_${folder} PRIVATE -O0)
  endif()
  if(FORETOKEN_CUDA)
    add_dependencies(test_${folder} foretoken_cuda)
  endif()
  if(TARGET foretoken AND folder IN_LIST folders_of_the_program)
    add_dependencies(test_${folder} foretoken)
  endif()
endforeach()

# ctest finds the unit tests and their labels when it starts (tests/entries.cmake).
file(WRITE ${PROJECT_BINARY_DIR}/unit_tests.cmake
  "set(folders ${test_folders})\nset(programs [[${PROJECT_BINARY_DIR}]])\n"
  "set(root [[${PROJECT_SOURCE_DIR}]])\ninclude([[${PROJECT_SOURCE_DIR}/tests/entries.cmake]])\n")
set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${PROJECT_BINARY_DIR}/unit_tests.cmake)

# The turns of slow ones here (tests/entries.cmake) spread their times.

# The server under the official clients, from a virtual environment inside the build folder; skips
# (77) where pip cannot install them.
find_package(Python3 COMPONENTS Interpreter)
if(TARGET foretoken AND Python3_Interpreter_FOUND)
  add_test(NAME e2e/openai COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/openai_suite.py $<TARGET_FILE:foretoken>
    ${PROJECT_BINARY_DIR}/e2e-venv)
  set_tests_properties(e2e/openai PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 60 LABELS "slow;third-0")
  # What clients send, against the program as a user starts it: one test for each x_door.py, all but those of
  # each day in thirds. Those that need the official clients skip (77) where pip cannot install them.
  set(doors_of_each_day start completions)
  file(GLOB door_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/doors/*_door.py)
  # Its drafts go by steps that it measures, which other work on the machine makes longer: by hand,
  # with ctest -C timed -R doors/steady_load.
  list(REMOVE_ITEM door_files ${PROJECT_SOURCE_DIR}/tests/doors/steady_load_door.py)
  add_test(NAME doors/steady_load CONFIGURATIONS timed
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tests/doors/steady_load_door.py
    $<TARGET_FILE:foretoken> ${PROJECT_BINARY_DIR}/e2e-venv)
  set_tests_properties(doors/steady_load PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 LABELS slow)
  set(third 0)
  foreach(door_file IN LISTS door_files)
    get_filename_component(door ${door_file} NAME_WE)
    string(REGEX REPLACE "_door$" "" door ${door})
    set(labels fast)
    if(NOT door IN_LIST doors_of_each_day)
      list(APPEND labels third-${third})
      math(EXPR third "(${third} + 1) % 3")
    endif()
    add_test(NAME doors/${door} COMMAND ${Python3_EXECUTABLE} ${door_file} $<TARGET_FILE:foretoken>
      ${PROJECT_BINARY_DIR}/e2e-venv)
    set_tests_properties(doors/${door} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 20 LABELS "${labels}")
  endforeach()
  # A part of all cells of the support matrix that a CPU can run, another one each day.
  add_test(NAME e2e/matrix_part COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/matrix_suite.py $<TARGET_FILE:foretoken> ${PROJECT_BINARY_DIR})
  set_tests_properties(e2e/matrix_part PROPERTIES TIMEOUT 1800 COST 60 LABELS slow)
  # Every such cell, hours of it: ctest -C matrix -R 'e2e/matrix$'. One that was ended goes on where
  # it was.
  add_test(NAME e2e/matrix CONFIGURATIONS matrix COMMAND foretoken matrix --every-cell --num-prompts 8
    --output ${PROJECT_BINARY_DIR}/matrix --work-folder ${PROJECT_BINARY_DIR}/matrix-models)
  set_tests_properties(e2e/matrix PROPERTIES TIMEOUT 86400 LABELS slow)
  # A batch that is killed and resumed.
  add_test(NAME e2e/batch_resume COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/lifecycle_suite.py $<TARGET_FILE:foretoken> BatchResume)
  set_tests_properties(e2e/batch_resume PROPERTIES TIMEOUT 1800 COST 60 LABELS "slow;third-1")
  # How the program ends. Suites with the lock `processes` start many and mostly wait: one of them at a
  # time, first of all, beside the others.
  add_test(NAME e2e/lifecycle COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/lifecycle_suite.py $<TARGET_FILE:foretoken> Termination)
  set_tests_properties(e2e/lifecycle PROPERTIES TIMEOUT 1800 RESOURCE_LOCK processes COST 90 LABELS "slow;third-2")
  # The same load in a small size.
  add_test(NAME e2e/serve_load COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/load_suite_test.py $<TARGET_FILE:foretoken> serve)
  set_tests_properties(e2e/serve_load PROPERTIES TIMEOUT 1800 RUN_SERIAL TRUE LABELS "slow;third-1")
  # The unit and the Dockerfile under their linters; skips (77) where none is there.
  add_test(NAME e2e/packaging COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/packaging_suite.py $<TARGET_FILE:foretoken>)
  set_tests_properties(e2e/packaging PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600 LABELS slow)
  # Ranks as threads, processes and hosts, killed and stopped ones among them.
  foreach(parts IN ITEMS "0 load faults" "1 layouts two_hosts" "3 experts" "5 contexts"
      "6 expert_hosts start_many")
    string(REPLACE " " ";" parts ${parts})
    list(POP_FRONT parts turn)
    list(GET parts 0 name)
    add_test(NAME e2e/ranks_${name} COMMAND ${Python3_EXECUTABLE}
      ${PROJECT_SOURCE_DIR}/tests/e2e/ranks_suite.py $<TARGET_FILE:foretoken> --only ${parts})
    set_tests_properties(e2e/ranks_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600
      RESOURCE_LOCK processes COST 90 LABELS "slow;turn-${turn}")
  endforeach()
  # Engines of several hosts behind one front end.
  add_test(NAME e2e/engine_hosts COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/engine_hosts_suite.py $<TARGET_FILE:foretoken>)
  set_tests_properties(e2e/engine_hosts PROPERTIES TIMEOUT 3600 RESOURCE_LOCK processes COST 90 LABELS "slow;turn-8")
  # The call that a host of eight GPUs is for, tried out with eight ranks of tiny models.
  add_test(NAME e2e/eight_gpus COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tools/cuda/eight_gpus.py --bin ${PROJECT_BINARY_DIR}
    --out ${PROJECT_BINARY_DIR}/eight-gpus --device cpu --num-prompts 8 --seconds 900
    --parts exchange,steps,families,prompts,dense,faults)
  set_tests_properties(e2e/eight_gpus PROPERTIES TIMEOUT 1200 RESOURCE_LOCK processes COST 60 LABELS "slow;turn-10")
  # Ranks on GPUs as processes and hosts, through NCCL; skips (77) without a GPU.
  add_test(NAME e2e/gpu_ranks COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/gpu_ranks_suite.py $<TARGET_FILE:foretoken>)
  set_tests_properties(e2e/gpu_ranks PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 RUN_SERIAL TRUE LABELS slow)
  # Arrivals, faults and starts of ranks that share a layer, in a small size.
  add_test(NAME e2e/rank_endurance COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/rank_endurance_suite.py $<TARGET_FILE:foretoken>
    --rounds 60 --starts 3 --only tp4 tp2-dp2-ep)
  set_tests_properties(e2e/rank_endurance PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 RESOURCE_LOCK processes COST 90 LABELS "slow;turn-11")
  # The page in headless Chromium; skips (77) where that or selenium is missing.
  add_test(NAME e2e/page COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/page_suite.py --program $<TARGET_FILE:foretoken>
    --environment ${PROJECT_BINARY_DIR}/e2e-venv)
  set_tests_properties(e2e/page PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 COST 60 LABELS "slow;third-1")
endif()

# The CUDA ops against plain references: one program without a test framework, so that it can be
# carried alone to a GPU machine (tools/cuda/pack_for_gpu.sh); it skips (77) where no GPU is. And times
# of the ops alone, built when asked for.
file(GLOB device_check_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cuda/*.cpp)
add_executable(device_check ${device_check_sources})
add_executable(cuda_kernels_bench ${PROJECT_SOURCE_DIR}/bench/cuda/cuda_kernels_bench.cpp)
foreach(program device_check cuda_kernels_bench)
  target_link_libraries(${program} PRIVATE foretoken_warnings ft_engine)
  target_include_directories(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/cuda)
  if(FORETOKEN_CUDA)
    add_dependencies(${program} foretoken_cuda)
  endif()
endforeach()
set_target_properties(cuda_kernels_bench PROPERTIES EXCLUDE_FROM_ALL ON)
if(FORETOKEN_CUDA)
  add_test(NAME cuda/device_check COMMAND device_check)
  set_tests_properties(cuda/device_check PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 LABELS slow)
  if(Python3_Interpreter_FOUND)
    add_test(NAME cuda/arrivals COMMAND ${Python3_EXECUTABLE}
      ${PROJECT_SOURCE_DIR}/tools/cuda/check_arrivals.py $<TARGET_FILE:foretoken_cuda>)
    set_tests_properties(cuda/arrivals PROPERTIES SKIP_RETURN_CODE 77 LABELS slow)
  endif()
else()
  set_target_properties(device_check PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

# Ranks as processes, without a model: killed, stopped, cut off, on two hosts as network namespaces.
add_executable(test_group_program ${PROJECT_SOURCE_DIR}/tests/e2e/group_program.cpp)
target_link_libraries(test_group_program PRIVATE foretoken_warnings ft_group)
if(Python3_Interpreter_FOUND)
  add_test(NAME e2e/group COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/group_suite.py $<TARGET_FILE:test_group_program>)
  set_tests_properties(e2e/group PROPERTIES TIMEOUT 3600 RESOURCE_LOCK processes COST 90 LABELS "slow;turn-12")
endif()

# The load suite against the server's layer alone.
find_package(Python3 COMPONENTS Interpreter)
add_executable(http_example_server ${PROJECT_SOURCE_DIR}/tests/e2e/example_server.cpp)
target_link_libraries(http_example_server PRIVATE foretoken_warnings ft_http)
if(Python3_Interpreter_FOUND)
  add_test(NAME e2e/http_load COMMAND ${Python3_EXECUTABLE}
    ${PROJECT_SOURCE_DIR}/tests/e2e/load_suite_test.py $<TARGET_FILE:http_example_server>)
  set_tests_properties(e2e/http_load PROPERTIES TIMEOUT 1800 LABELS "slow;third-0")
endif()
