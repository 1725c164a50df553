if(NOT FORETOKEN_FUZZ)
  add_library(fuzz_replay STATIC ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
  target_link_libraries(fuzz_replay PRIVATE foretoken_warnings)
endif()

# ft_fuzzer(<name> <corpus> TESTS <source>... SOURCES <source>... [LIBRARIES <library>...]): the
# program <name> from tests/fuzz/<name>.cpp, further TESTS of tests/ and SOURCES of src/, over
# tests/fuzz/corpus/<corpus>. With FORETOKEN_FUZZ (clang) it is a libFuzzer program with
# AddressSanitizer and UndefinedBehaviorSanitizer, run as
#   build/fuzz/http_request_fuzzer -max_total_time=600 CORPUS_COPY tests/fuzz/corpus/http_request
#   build/fuzz/json_request_fuzzer -max_total_time=600 -detect_leaks=0 -dict=tests/fuzz/json_request.dict CORPUS_COPY
#   build/fuzz/gguf_fuzzer -max_total_time=600 -max_len=8192 -dict=tests/fuzz/gguf.dict CORPUS_COPY
#   build/fuzz/torch_file_fuzzer -max_total_time=600 -max_len=8192 CORPUS_COPY
#   build/fuzz/quantized_folder_fuzzer -max_total_time=600 -max_len=8192 CORPUS_COPY
#   build/fuzz/adapter_fuzzer -max_total_time=600 -max_len=8192 CORPUS_COPY
#   build/fuzz/folder_fuzzer -max_total_time=600 -max_len=8192 CORPUS_COPY
#   build/fuzz/vocabulary_fuzzer -max_total_time=600 -max_len=8192 CORPUS_COPY
# otherwise it replays the corpus and changed copies of it, as a test, with LIBRARIES in place of
# SOURCES where they are given.
function(ft_fuzzer name corpus)
  cmake_parse_arguments(arg "" "" "TESTS;SOURCES;LIBRARIES" ${ARGN})
  list(TRANSFORM arg_TESTS PREPEND ${PROJECT_SOURCE_DIR}/tests/)
  list(TRANSFORM arg_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.cpp ${arg_TESTS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE foretoken_warnings foretoken_boost spdlog::spdlog
    nlohmann_json::nlohmann_json ZLIB::ZLIB)
  if(FORETOKEN_FUZZ)
    set(flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_sources(${name} PRIVATE ${arg_SOURCES})
    target_compile_options(${name} PRIVATE ${flags} -O1 -g1)
    target_link_options(${name} PRIVATE ${flags})
    return()
  endif()
  if(arg_LIBRARIES)
    target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
  else()
    target_sources(${name} PRIVATE ${arg_SOURCES})
  endif()
  target_link_libraries(${name} PRIVATE fuzz_replay)
  add_test(NAME fuzz/${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
endfunction()

ft_fuzzer(http_request_fuzzer http_request
  SOURCES http/server/request_parser.cpp http/message/inflater.cpp http/message/header_text.cpp
    http/message/target.cpp base/check.cpp
  LIBRARIES ft_http)

# All of serve/ but what other libraries are needed for.
file(GLOB_RECURSE json_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/src/serve/*.cpp ${PROJECT_SOURCE_DIR}/src/chat/*.cpp
  ${PROJECT_SOURCE_DIR}/src/config/*.cpp)
list(FILTER json_sources EXCLUDE REGEX "serve/(.*/)?(metric|page_routes|openapi|api_routes)")
ft_fuzzer(json_request_fuzzer json_request
  TESTS fuzz/canned_engine.cpp
  SOURCES ${json_sources} base/files/json_object.cpp base/log.cpp base/check.cpp
    http/message/exchange.cpp http/message/header_text.cpp ../tests/fuzz/engine_names.cpp
  LIBRARIES ft_serve)

file(GLOB_RECURSE gguf_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/src/gguf/*.cpp)
file(GLOB_RECURSE checkpoint_sources CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/src
  ${PROJECT_SOURCE_DIR}/src/model/files/*.cpp)
list(APPEND checkpoint_sources ${gguf_sources} kernels/rows/fill_random.cpp base/quantized_rows.cpp
  base/check.cpp base/files/json_object.cpp base/log.cpp base/files/mapped_file.cpp base/files/new_file.cpp
  base/files/python_json.cpp base/files/text_file.cpp)
ft_fuzzer(gguf_fuzzer gguf
  SOURCES ${checkpoint_sources}
  LIBRARIES ft_model)

ft_fuzzer(quantized_folder_fuzzer quantized_folder
  SOURCES ${checkpoint_sources}
  LIBRARIES ft_model)

ft_fuzzer(adapter_fuzzer adapter
  SOURCES ${checkpoint_sources} model/weights/lora_adapter.cpp model/config/peft_config.cpp
  LIBRARIES ft_model)

ft_fuzzer(folder_fuzzer folder
  SOURCES ${checkpoint_sources}
  LIBRARIES ft_model)

ft_fuzzer(torch_file_fuzzer torch_file
  SOURCES model/files/containers/torch_file.cpp model/files/containers/pickle.cpp
    model/files/containers/zip_entries.cpp model/files/containers/safetensors.cpp
    model/files/containers/json_file.cpp ${gguf_sources} base/check.cpp base/files/json_object.cpp
    base/files/mapped_file.cpp base/files/new_file.cpp base/files/python_json.cpp base/files/text_file.cpp
  LIBRARIES ft_model)

ft_fuzzer(vocabulary_fuzzer vocabulary
  SOURCES ${gguf_sources} base/check.cpp base/files/json_object.cpp base/files/mapped_file.cpp base/files/new_file.cpp
    base/files/text_file.cpp
  LIBRARIES ft_gguf)
