# Several sources in one compiler run, for builds that are made once and whole: half of the time.
# Names of unnamed namespaces may clash then; such files stand alone here.
option(FORETOKEN_UNITY "Compile several sources at once" OFF)
if(NOT FORETOKEN_UNITY)
  return()
endif()
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# Called at the end, when all targets are known.
function(ft_unity_targets)
  foreach(folder IN ITEMS chat convert draft engine group gguf http hub model serve spec text)
    set_target_properties(ft_${folder} PROPERTIES UNITY_BUILD ON)
  endforeach()
  set_target_properties(foretoken PROPERTIES UNITY_BUILD ON)
  if(NOT FORETOKEN_TESTS)
    return()
  endif()
  foreach(folder IN ITEMS apps base bench chat conformance convert device draft engine gguf group http
      hub model sched serve text)
    set_target_properties(test_${folder} PROPERTIES UNITY_BUILD ON)
  endforeach()
endfunction()

set(alone
  apps/bench_dataset.cpp
  apps/bench_kernels.cpp
  apps/bench_pairs.cpp
  apps/bench_startup.cpp
  apps/foreign_flag_table.cpp
  apps/graph_options.cpp
  apps/speculative_option.cpp
  apps/vllm_flag_table.cpp
  src/chat/gemma_calls.cpp
  src/chat/generic_tools.cpp
  src/chat/json_calls.cpp
  src/chat/json_scan.cpp
  src/chat/python_scan.cpp
  src/chat/reasoning_scan.cpp
  src/chat/section_calls.cpp
  src/chat/xml_calls.cpp
  src/convert/to_gptq.cpp
  src/gguf/block_encode_k.cpp
  src/http/client.cpp
  src/http/cors.cpp
  src/model/dialled_config.cpp
  src/model/dialled_fill.cpp
  src/model/dialled_heads.cpp
  src/model/draft_head_config.cpp
  src/model/layer_pattern.cpp
  src/model/safetensors_writer.cpp
  src/serve/foreign_chat.cpp
  src/serve/foreign_fields.cpp
  src/serve/messages_input.cpp
  src/serve/metrics.cpp
  src/serve/openai_choice.cpp
  src/serve/openai_response.cpp
  src/serve/openapi_rules.cpp
  src/serve/request_gate.cpp
  src/serve/responses_format.cpp
  src/serve/responses_input.cpp
  src/serve/responses_request.cpp
  src/text/chat_traits.cpp
  src/text/tokenizer_config.cpp
  tests/apps/generate_test.cpp
  tests/apps/graph_flags_test.cpp
  tests/chat/xml_calls_test.cpp
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
  tests/engine/plan_feed_test.cpp
  tests/engine/quantized_engine_test.cpp
  tests/engine/request_builder_test.cpp
  tests/engine/resolve_config_test.cpp
  tests/engine/sampling_checks_test.cpp
  tests/engine/slot_params_test.cpp
  tests/engine/step_scratch_test.cpp
  tests/gguf/block_encode_test.cpp
  tests/http/client_test.cpp
  tests/http/tls_context_test.cpp
  tests/model/config_test.cpp
  tests/model/model_test.cpp
  tests/serve/timings_test.cpp
  tests/serve/foreign_chat_test.cpp
  tests/serve/foreign_fields_test.cpp
  tests/serve/llama_format_test.cpp
  tests/serve/llama_request_test.cpp
  tests/serve/messages_input_test.cpp
  tests/serve/messages_format_test.cpp
  tests/serve/openai_format_test.cpp
  tests/serve/openai_request_test.cpp
  tests/serve/openapi_fields_test.cpp
  tests/serve/responses_format_test.cpp
  tests/serve/responses_request_test.cpp
  tests/serve/structured_fields_test.cpp
  tests/text/chat_prompt_test.cpp
  tests/text/json_schema_test.cpp)
list(TRANSFORM alone PREPEND ${PROJECT_SOURCE_DIR}/)
set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
