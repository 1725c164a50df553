# ft_fuzzer(<name> <corpus> <source>...): the program <name> from tests/fuzz/<name>.cpp and sources of
# src/, over tests/fuzz/corpus/<corpus>. With FORETOKEN_FUZZ (clang) it is a libFuzzer program with
# AddressSanitizer and UndefinedBehaviorSanitizer, run as
#   build/fuzz/http_request_fuzzer -max_total_time=600 CORPUS_COPY tests/fuzz/corpus/http_request
# otherwise it replays the corpus and changed copies of it, as a test.
function(ft_fuzzer name corpus)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/)
  add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}.cpp ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE foretoken_warnings foretoken_boost spdlog::spdlog
    nlohmann_json::nlohmann_json)
  if(FORETOKEN_FUZZ)
    set(flags -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all)
    target_compile_options(${name} PRIVATE ${flags} -O1 -g1)
    target_link_options(${name} PRIVATE ${flags})
  else()
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cpp)
    add_test(NAME fuzz/${name} COMMAND ${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${corpus})
  endif()
endfunction()

ft_fuzzer(http_request_fuzzer http_request
  http/request_parser.cpp http/header_text.cpp http/target.cpp base/check.cpp)
