# Several sources of one room in one compiler run, for builds that are made once and whole: half of the
# time. Names of unnamed namespaces may clash then; such files stand alone here.
option(FORETOKEN_UNITY "Compile several sources at once" OFF)
if(NOT FORETOKEN_UNITY)
  return()
endif()
set(unity_batch_size 8)

# ft_unity(<target>): the target's sources, a room at a time.
function(ft_unity target)
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(room ${source} DIRECTORY)
    file(RELATIVE_PATH room ${PROJECT_SOURCE_DIR} ${room})
    string(MAKE_C_IDENTIFIER "${room}" room)
    list(APPEND sources_of_${room} ${source})
    list(LENGTH sources_of_${room} place)
    math(EXPR batch "(${place} - 1) / ${unity_batch_size}")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room}_${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Called at the end, when all targets are known.
function(ft_unity_targets)
  foreach(folder IN ITEMS chat convert draft engine group gguf http hub model serve spec text)
    if(TARGET ft_${folder})
      get_target_property(type ft_${folder} TYPE)
      if(NOT type STREQUAL "INTERFACE_LIBRARY")
        ft_unity(ft_${folder})
      endif()
    endif()
  endforeach()
  ft_unity(foretoken)
  ft_unity(ft_dialled)
  if(NOT FORETOKEN_TESTS)
    return()
  endif()
  foreach(folder IN ITEMS apps base bench chat conformance convert device draft engine gguf group http
      hub model sched serve spec text)
    if(TARGET test_${folder})
      ft_unity(test_${folder})
    endif()
  endforeach()
endfunction()

set(alone
  apps/bench/bench_dataset.cpp
  apps/bench/bench_kernels.cpp
  apps/bench/bench_pairs.cpp
  apps/bench/bench_startup.cpp
  apps/flags/foreign_flag_table.cpp
  apps/options/graph_options.cpp
  apps/options/speculative_option.cpp
  apps/flags/vllm_flag_table.cpp
  src/chat/calls/gemma_calls.cpp
  src/chat/generic_tools.cpp
  src/chat/calls/json_calls.cpp
  src/chat/scan/json_scan.cpp
  src/chat/scan/python_scan.cpp
  src/chat/calls/reasoning_scan.cpp
  src/chat/calls/section_calls.cpp
  src/chat/calls/xml_calls.cpp
  src/convert/to_gptq.cpp
  src/gguf/blocks/block_encode_k.cpp
  src/http/client/client.cpp
  src/http/server/cors.cpp
  tools/dialled/dialled_config.cpp
  tools/dialled/dialled_fill.cpp
  tools/dialled/dialled_heads.cpp
  src/model/draft_head_config.cpp
  src/model/config/layer_pattern.cpp
  tools/dialled/safetensors_writer.cpp
  src/serve/openai/foreign_chat.cpp
  src/serve/openai/foreign_fields.cpp
  src/serve/anthropic/messages_input.cpp
  src/serve/metrics/metrics.cpp
  src/serve/openai/openai_choice.cpp
  src/serve/openai/openai_response.cpp
  src/serve/openapi/openapi_rules.cpp
  src/serve/flow/request_gate.cpp
  src/serve/responses/responses_format.cpp
  src/serve/responses/responses_input.cpp
  src/serve/responses/responses_request.cpp
  src/text/chat_traits.cpp
  src/text/tokenizer_config.cpp
  tests/apps/generate_test.cpp
  tests/apps/graph_flags_test.cpp
  tests/chat/calls/xml_calls_test.cpp
  tests/conformance/counts_test.cpp
  tests/conformance/drafter_edges_test.cpp
  tests/conformance/drafter_load_test.cpp
  tests/conformance/drafter_mix_test.cpp
  tests/conformance/grammar_test.cpp
  tests/conformance/graph_modes_test.cpp
  tests/conformance/identity_test.cpp
  tests/conformance/int8_kv_test.cpp
  tests/conformance/layouts.cpp
  tests/conformance/pooling_test.cpp
  tests/engine/draft_recovery_test.cpp
  tests/engine/step/plan_feed_test.cpp
  tests/engine/quantized_engine_test.cpp
  tests/engine/request/request_builder_test.cpp
  tests/engine/start/resolve_config_test.cpp
  tests/engine/request/sampling_checks_test.cpp
  tests/engine/request/slot_params_test.cpp
  tests/engine/step/step_scratch_test.cpp
  tests/gguf/blocks/block_encode_test.cpp
  tests/http/client/client_test.cpp
  tests/http/server/tls_context_test.cpp
  tests/model/config/config_test.cpp
  tests/model/model_test.cpp
  tests/serve/answer/timings_test.cpp
  tests/serve/openai/foreign_chat_test.cpp
  tests/serve/openai/foreign_fields_test.cpp
  tests/serve/llamacpp/llama_format_test.cpp
  tests/serve/llamacpp/llama_request_test.cpp
  tests/serve/anthropic/messages_input_test.cpp
  tests/serve/anthropic/messages_format_test.cpp
  tests/serve/openai/openai_format_test.cpp
  tests/serve/openai/openai_request_test.cpp
  tests/serve/openapi/openapi_fields_test.cpp
  tests/serve/responses/responses_format_test.cpp
  tests/serve/responses/responses_request_test.cpp
  tests/serve/fields/structured_fields_test.cpp
  tests/text/chat_prompt_test.cpp
  tests/text/json_schema_test.cpp)
list(TRANSFORM alone PREPEND ${PROJECT_SOURCE_DIR}/)
set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
