#include "config_fields.h"

#include "apps/options/default_model.h"
#include "apps/options/speculative_option.h"
#include "serve/fields/json_fields.h"

namespace foretoken::python {
namespace {

using json = nlohmann::ordered_json;

void read_model_fields(JsonFields& fields, EngineConfig* config) {
  fields.read("model", &config->model);
  fields.read("revision", &config->revision);
  fields.read("download_dir", &config->download_dir);
  fields.read("device", &config->device);
  fields.read("device_ordinal", &config->device_ordinal);
  fields.read("cpu_threads", &config->cpu_threads);
  fields.read("dtype", &config->dtype);
  fields.read("quantization", &config->quantization);
  fields.read("kv_cache_dtype", &config->kv_cache_dtype);
  fields.read("load_format", &config->load_format);
  fields.read("hf_overrides", &config->hf_overrides);
  fields.read("generation_config", &config->generation_config);
  fields.read("override_generation_config", &config->override_generation_config);
  fields.read("chat_template", &config->chat_template);
  fields.read("skip_tokenizer_init", &config->skip_tokenizer_init);
  fields.read("attention_backend", &config->attention_backend);
  fields.read("batch_invariant", &config->batch_invariant);
  fields.read("seed", &config->seed);
}

void read_batch_fields(JsonFields& fields, EngineConfig* config) {
  fields.read("max_model_len", &config->max_model_len);
  fields.read("max_num_seqs", &config->max_num_seqs);
  fields.read("max_num_batched_tokens", &config->max_num_batched_tokens);
  fields.read("block_size", &config->block_size);
  fields.read("num_gpu_blocks_override", &config->num_gpu_blocks_override);
  uint64_t kv_bytes = 0;
  fields.read("kv_cache_memory_bytes", &kv_bytes);
  config->kv_cache_memory_bytes = static_cast<int64_t>(kv_bytes);
  fields.read("gpu_memory_utilization", &config->gpu_memory_utilization);
  fields.read("enable_prefix_caching", &config->enable_prefix_caching);
  fields.read("step_timeout_seconds", &config->step_timeout_seconds);
  fields.read("enforce_eager", &config->enforce_eager);
  fields.read("cudagraph_mode", &config->cudagraph_mode);
  fields.read("cudagraph_capture_sizes", &config->cudagraph_capture_sizes);
  fields.read("max_cudagraph_capture_size", &config->max_cudagraph_capture_size);
  fields.read("steps_in_flight", &config->steps_in_flight);
  fields.read("tensor_parallel_size", &config->parallel.tensor_parallel_size);
  fields.read("pipeline_parallel_size", &config->parallel.pipeline_parallel_size);
  fields.read("data_parallel_size", &config->parallel.data_parallel_size);
  fields.read("decode_context_parallel_size", &config->parallel.decode_context_parallel_size);
  fields.read("enable_expert_parallel", &config->parallel.enable_expert_parallel);
  fields.read("disable_custom_all_reduce", &config->parallel.disable_custom_all_reduce);
  fields.read("scheduling_policy", &config->scheduling_policy);
  fields.read("max_logprobs", &config->max_logprobs);
  fields.read("max_processor_rows", &config->max_processor_rows);
  fields.read("step_time_table", &config->step_time_table);
  fields.read("disable_log_stats", &config->disable_log_stats);
  fields.read("profile", &config->profile);
  fields.read("enable_layerwise_nvtx_tracing", &config->enable_layerwise_nvtx_tracing);
}

void read_adapter_fields(JsonFields& fields, EngineConfig* config) {
  fields.read("enable_lora", &config->enable_lora);
  fields.read("max_loras", &config->max_loras);
  fields.read("max_lora_rank", &config->max_lora_rank);
  fields.read("max_cpu_loras", &config->max_cpu_loras);
  fields.read("lora_dtype", &config->lora_dtype);
}

}  // namespace

Result<EngineConfig> read_config(const std::string& text) {
  FT_ASSIGN_OR_RETURN(const json object, parse_ordered_json_object(text, "the engine arguments"));
  EngineConfig config;
  JsonFields fields(object, "");
  read_model_fields(fields, &config);
  read_batch_fields(fields, &config);
  read_adapter_fields(fields, &config);
  const json* speculative = fields.raw("speculative_config");
  fields.refuse_unread();
  FT_RETURN_IF_ERROR(fields.status());
  config.model = config.model.empty() ? default_model() : bundled_or_given(config.model);
  if (config.model.empty()) {
    return not_found("the bundled model " + bundled_model_name() +
                     " was not found; give `model`, or set FORETOKEN_MODELS_DIR to its folder");
  }
  if (speculative == nullptr) return config;
  FT_ASSIGN_OR_RETURN(config.speculative,
                      parse_speculative_config(speculative->dump(), config.model));
  return config;
}

}  // namespace foretoken::python
